// Package numbers computes what docs/numbers.md says, and measures what docs/accuracy.md says of memory: its
// tests write each table anew and compare it with the page, and try the other figures on the parts
// themselves.
package numbers
