// Package migrating holds the code that docs/migrating.md quotes, so that all of it is
// compiled. A program asks a service for its users: once with the library that it came
// with, and once with weir. The tests give both the same calls and compare.
package migrating
