// Command soak runs weir under load with faults. Hundreds of gates, and groups with changing keys,
// call services that fail, hang and recover. Meanwhile breakers are overridden and gates
// reconfigured at random, alerts are evaluated and delivered, and exporters and browsers read the
// metrics. If there is a redis-server, two nodes of a fleet share limits and counts on a Redis that
// is killed and restarted.
//
// The command counts everything itself, and exits with status 1 if its counts and weir's disagree.
// It checks that
//
//   - each call ends exactly once, and none is lost
//   - no limit allows more than its bound, in the long run or in any window
//   - no half-open breaker uses more probes than it may
//   - no exported counter goes back, and no scrape fails
//   - neither memory nor goroutines grow
//
// It runs for ten minutes, or as long as the flag -for says.
package main
