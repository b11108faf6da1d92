// Command soak wears weir down: hundreds of gates and groups whose keys come and go call
// services that fail, hang and recover, while breakers are overridden and reconfigured at
// random, alerts are judged and delivered, and exporters and browsers look on. Two nodes of a
// fleet share limits and counts on a Redis, if there is one, that is killed and started again. All along it
// keeps books of its own, and it ends with exit status 1 if they and weir's disagree:
//
//   - each call has exactly one end, and none is lost
//   - no limit admits more than its bound, in the long run or in any window
//   - no half-open breaker judges more probes than it may let out
//   - no counter that is exported ever goes back, and no scrape fails
//   - neither memory nor goroutines grow
//
// It runs for ten minutes, or as long as -for says.
package main
