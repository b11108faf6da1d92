// Package migrating holds the code that docs/migrating quotes, so that all of it is compiled. A
// program fetches users from a service, once with another library and once with weir. The tests
// make the same calls through both and compare the results. The packages before and after are one
// service, for which the same tests pass.
package migrating
