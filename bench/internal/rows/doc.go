// Package rows is the table of comparisons: what we do beside what another library, or the bare machine, does for the
// same work.
//
// Each side is used as its documents say, with the config that comes closest to the other's. What was not the same is
// written down in the row, and a row in which the other is faster says why. The fleet's limiters need a server to
// compare with, so their table lives beside them.
package rows
