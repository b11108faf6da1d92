// Package parity holds tests that the figures of weir look the same whichever
// way they leave: by the package prom, or by the package otelmetric and
// OpenTelemetry's exporter for Prometheus.
package parity
