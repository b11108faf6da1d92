// Package readme holds the code that the README quotes, so that all of it is compiled and tested. A
// shop calls a payment service. It limits and guards the calls, gets an alert when too many of them
// fail, and exports its metrics.
package readme
