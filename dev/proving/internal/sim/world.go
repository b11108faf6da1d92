package sim

import "time"

// World describes the surroundings of a guard: a service, its faults over time, and its callers.
// All its times count from the start of the simulation.
type World struct {
	Service Service
	// Faults change the service over time. Where two overlap, both apply.
	Faults []Fault
	// Clients call the service, each through guards of their own.
	Clients []Client
	// For is how long the simulation runs.
	For time.Duration
	// Warmup is left out of all figures.
	Warmup time.Duration
	// Trouble is the time in which the service is in trouble. The figures "meanwhile" belong to it,
	// and "until back" counts from its end. Zero where nothing happens.
	Trouble Span
}

// Span is the time from From until To.
type Span struct{ From, To time.Duration }

// Service is a number of servers with one queue. A call that its caller has given up on is served
// nevertheless, unless DropsAbandoned is true.
type Service struct {
	// Servers is how many calls are served at once by each host.
	Servers int
	// Time is the time that a server works on one call.
	Time Distribution
	// Queue is the maximum number of calls that wait at one host. Further calls fail at once.
	Queue int
	// Hosts is the number of equal hosts behind the service's name. Each call goes to one at
	// random. Default 1.
	Hosts int
	// InTurn makes the calls go to the hosts one after the other in place of at random.
	InTurn bool
	// ErrorRate is the share of calls that fail on a good day, 0 to 1.
	ErrorRate float64
	// DropsAbandoned is true for a service that notices that a waiting caller has gone. The call is
	// then neither served nor does it fill the queue.
	DropsAbandoned bool
	// RetryAfter is the wait that the service sends with the failures of a full queue or an outage.
	// Default 0, nothing.
	RetryAfter time.Duration
}

// Fault changes the service for a while.
type Fault struct {
	Span
	// Down fails all calls after FailTime, without a server. Calls that wait or are served when the
	// fault begins fail at once.
	Down bool
	// FailTime is how long a call takes that fails because of Down or ErrorRate. A server works on
	// a call that fails because of ErrorRate. Default 1 ms for Down, and the usual time for
	// ErrorRate.
	FailTime time.Duration
	// TellsEnd makes a service that is down say with each failure how long the fault still lasts,
	// in place of Service.RetryAfter.
	TellsEnd bool
	// ErrorRate is the share of calls that fail, 0 to 1.
	ErrorRate float64
	// Slower multiplies the time of each call that a server begins meanwhile. Default 1.
	Slower float64
	// SlowShare is the share of calls that Slower applies to, 0 to 1. Default 1.
	SlowShare float64
	// Capacity is the share of servers of each host that work, rounded to a number of servers, at
	// least one. The other servers finish the call that they have. NoCapacity is a hang: all work
	// stops, and continues at the end. Default 1.
	Capacity float64
	// Lost is the share of calls that never get an answer, 0 to 1. No server works on them.
	Lost float64
	// Period alternates the fault: it is in effect in the first part of each period. Default
	// always.
	Period time.Duration
	// Duty is the share of each period in which the fault is in effect. Default half.
	Duty float64
	// Grows makes Slower and ErrorRate grow evenly from nothing when the fault begins to their full
	// size when it ends.
	Grows bool
	// Host is the only host that the fault is at, counted from 1. Default all hosts.
	Host int
	// Cold makes the calls after the fault slower: the first by this factor, and less so with each
	// call that was served, until ColdCalls calls were served by all hosts together. Default 1.
	Cold      float64
	ColdCalls int
}

// NoCapacity is the Capacity of a service of which no server works.
const NoCapacity = -1

// Client is a number of equal processes that call the service.
type Client struct {
	// Processes is the number of processes, each with a guard of its own. Default 1.
	Processes int
	// Rate is the calls per second of all processes together, as a Poisson process. 0 for a closed
	// loop.
	Rate float64
	// Users are the callers of a closed loop in each process: each waits for its answer, thinks,
	// and calls again.
	Users int
	// Think is the mean time between the end of a call and the next call of the same user,
	// exponential.
	Think time.Duration
	// Timeout is the deadline of each attempt. Default none.
	Timeout time.Duration
	// Cancels makes callers cancel an attempt after Timeout. Its context has no deadline.
	Cancels bool
	// StreamShare is the share of calls that are streams, 0 to 1. The service accepts a stream when
	// a server is free, and serves it until its client leaves. The client then cancels the context,
	// which has no deadline. The call is good if the stream was being served at that time.
	StreamShare float64
	// Stream is the distribution of the time from the start of a stream until its client leaves.
	Stream Distribution
	// HurriedShare is the share of calls with the deadline Hurried in place of Timeout.
	HurriedShare float64
	Hurried      time.Duration
	// Retries is the most further attempts after one that failed or was refused.
	Retries int
	// Backoff is the mean wait before the first retry; it doubles with each, and is drawn uniformly
	// from 0 to twice the mean.
	Backoff time.Duration
	// ObeysRetryAfter makes retries wait at least as long as a refusal or the service said.
	ObeysRetryAfter bool
	// Budget bounds retries by a token bucket in each process, as Marc Brooker describes: a good
	// call adds Budget tokens, and a retry takes one. The bucket holds 10, and is full at first.
	// Default no bound.
	Budget float64
	// From and To bound the time in which calls begin. Default always.
	From, To time.Duration
	// Suspended stops all processes of the client, as SIGSTOP does: no call is offered, and
	// answers, timeouts and retries that fall into this time arrive at its end, at one instant. A
	// call that has both an answer and a timeout then takes the timeout, as nearly all calls of the
	// process of package suspend do. Timers of the guard itself keep running.
	Suspended Span
	// Surge multiplies Rate in some spans of time, such as a peak.
	Surge []Surge
}

// Surge multiplies the rate of a client in a span of time.
type Surge struct {
	Span
	Times float64
}
