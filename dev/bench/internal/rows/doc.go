// Package rows holds the table of comparisons: weir beside another library, or beside the machine
// itself, for the same work.
//
// Each side is used as its documentation says, with the config that is closest to the other side's.
// The row says what differs. A row in which the other side is faster says why.
package rows
