package breaker

import "slices"

// State says how a breaker treats calls. Logs, metrics and configurations show the same text, such
// as half_open.
type State string

// The states that a breaker enters automatically, and the overrides that Force sets on top of them.
const (
	Closed       State = "closed"        // calls pass and are counted
	Open         State = "open"          // calls are refused until the cooldown is over
	HalfOpen     State = "half_open"     // a few calls pass as probes, and their results decide
	Recovering   State = "recovering"    // a share of the calls passes, which their results change
	ForcedOpen   State = "forced_open"   // override: calls are refused until Release
	ForcedClosed State = "forced_closed" // override: calls pass and are counted; nothing opens it
	Disabled     State = "disabled"      // override: calls pass and are not counted
	Shadow       State = "shadow"        // override: calls pass; those it would refuse are counted
)

// evicted is the state of a breaker that its group has evicted. No caller sees it: the breaker
// passes everything on to the breaker that its key has now.
const evicted State = "evicted"

// stateMachine is the state machine: it describes the behavior of a breaker in each state. The
// package comment has the same table, with what ends each state.
var stateMachine = map[State]behavior{
	Closed:       {passes: allCalls, results: judgeResults, counts: showWindow},
	Open:         {passes: noCalls, counts: showOpening},
	HalfOpen:     {passes: onlyProbes, results: probeResults, counts: showProbes},
	Recovering:   {passes: shareOfCalls, results: rampResults, counts: showWindow},
	ForcedOpen:   {passes: noCalls},
	ForcedClosed: {passes: allCalls, results: countResults, counts: showWindow},
	Disabled:     {passes: allCalls},
	Shadow:       {passes: allCalls, results: countResults, counts: showWindow},
	evicted:      {passes: toSuccessor},
}

// behavior describes how a breaker treats calls in a state.
type behavior struct {
	passes  passRule
	results resultUse
	counts  countsShown
}

// passRule says which calls pass.
type passRule uint8

const (
	allCalls passRule = iota
	noCalls
	onlyProbes
	shareOfCalls
	toSuccessor // the successor of the evicted breaker decides
)

// resultUse says how the results of calls are used.
type resultUse uint8

const (
	dropResults resultUse = iota
	countResults
	judgeResults // counted, and each may open the breaker
	probeResults // counted, and enough of them end the state
	rampResults  // counted, and each round of them sets the share of the calls that pass
)

// countsShown says what Counts returns.
type countsShown uint8

const (
	showNothing countsShown = iota
	showWindow
	showOpening // the counts that opened the breaker
	showProbes
)

const stateCount = 8

// states are the states that callers see, in the order of the metrics.
var states = [stateCount]State{Closed, Open, HalfOpen, Recovering, ForcedOpen, ForcedClosed, Disabled, Shadow}

// perState has one value for each of states.
type perState[T any] [stateCount]T

func (p *perState[T]) of(s State) *T { return &p[slices.Index(states[:], s)] }

// isOverride reports whether Force may set s.
func (s State) isOverride() bool { return slices.Contains(states[4:], s) }
