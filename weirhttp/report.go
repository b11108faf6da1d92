package weirhttp

import "github.com/weir-go/weir/internal/report"

// The live page reads the limits of the policies through this function.
var _ = func() bool {
	report.Parts = append(report.Parts, func(source any, yield func(name string, limiter any)) {
		l, ok := source.(*Limit)
		if !ok {
			return
		}
		for _, q := range l.rules.Load().quotas {
			if q.keys != nil {
				yield(q.policy.Name, q.keys)
			}
			if q.networks != nil {
				yield(q.policy.networkName(), q.networks)
			}
		}
	})
	return true
}()
