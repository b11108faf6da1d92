// Package servers tests that servers which get the metrics of a program have the counts of the
// program: Prometheus, and a receiver of OTLP.
package servers
