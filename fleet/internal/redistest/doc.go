// Package redistest starts Redis and Valkey servers for tests. A proxy between a server and its
// clients simulates a network that fails.
//
// Each server is a separate process with its own port and its own folder, and ends with the
// test. The program is redis-server or
// valkey-server, whichever PATH has first, or the one that the environment variable
// WEIR_REDIS_SERVER names. If there is none, the test fails and says what to
// install. The package needs a Unix.
package redistest
