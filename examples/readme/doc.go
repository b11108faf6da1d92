// Package readme holds the code that the README quotes, region by region, so that all of
// it is compiled and run by a test. A shop calls a payment service: it throttles and
// guards the calls, is told when too many of them fail, and shows its figures.
package readme
