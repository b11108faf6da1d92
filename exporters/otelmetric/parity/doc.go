// Package parity holds tests that the figures of weir look the same whichever
// way they leave: by the package prom, or by the package otelmetric and
// OpenTelemetry's exporter for Prometheus.
//
// It is a module of its own, for no one to require: what these tests need of
// Prometheus is so no concern of those who use otelmetric.
package parity
