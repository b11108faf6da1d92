// Package interop tests weirhttp against what it meets in programs: otelhttp outside and
// inside of it, and what a load leaves behind. It is a module of its own, so that nobody who
// uses weirhttp depends on what is tested with.
package interop
