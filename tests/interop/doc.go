// Package interop tests weirhttp against what it meets in programs: otelhttp outside and
// inside of it, and what a load leaves behind.
package interop
