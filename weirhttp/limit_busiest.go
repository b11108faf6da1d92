package weirhttp

import "github.com/weir-go/weir/limiter"

// Busiest returns, for each policy, up to n of the keys that it has refused most often, with the
// most refused key first. Clients that are counted by network (see Policy.Overflow) follow, under
// the name of the policy with " by network" appended. The keys of a policy with a Remote are those
// that the Remote has refused. Counting costs nothing for allowed requests. See [limiter.BusyKey]
// for the bounds of the counts, and Policy.ShowKeys for what is shown of a key.
func (l *Limit) Busiest(n int) (keys []limiter.BusyKey) {
	for _, q := range l.rules.Load().quotas {
		keys = append(keys, q.busiest(n)...)
	}
	return keys
}

// busiest returns the keys of Busiest of one policy.
func (q *quota) busiest(n int) (keys []limiter.BusyKey) {
	for _, k := range q.refusals.Busiest(q.policy.Name, n) {
		keys = append(keys, limiter.BusyKey(k))
	}
	if q.keys != nil {
		keys = append(keys, q.keys.Busiest(n)...)
	}
	if q.networks != nil {
		keys = append(keys, q.networks.Busiest(n)...)
	}
	return keys
}

// Busiest implements keyTable.
func (w *windowTable) Busiest(n int) (keys []limiter.BusyKey) {
	for _, k := range w.refusals.Busiest(w.named.Name(), n) {
		keys = append(keys, limiter.BusyKey(k))
	}
	return keys
}
