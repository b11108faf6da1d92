// Package redistest starts Redis and Valkey servers for tests, and stands between
// them and their clients as a network that fails.
//
// Each server is a process of its own on a port of its own, with a folder of its
// own, and is gone when the test is over. The program is redis-server or
// valkey-server, whichever PATH has first, or the one that the environment variable
// WEIR_REDIS_SERVER names. Where there is none the test fails and says what to
// install. It needs a Unix.
package redistest
