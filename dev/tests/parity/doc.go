// Package parity tests that Prometheus gets the same metrics both ways: from package prom, and from
// package otelmetric through OpenTelemetry's exporter for Prometheus.
package parity
