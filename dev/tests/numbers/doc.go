// Package numbers computes the figures of docs/numbers.md, and measures the memory in
// docs/accuracy.md. Its tests generate each table and compare it with the page. They try the other
// figures on real breakers, limiters and alerts.
package numbers
