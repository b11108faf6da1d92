package weirconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// closeRemoved makes the objects that are not in the next setup refuse calls. If a later setup has
// an object again, the object allows calls again, because its config has neither this Force nor
// this policy.
func (s *Set) closeRemoved(next *setup) (err error) {
	for name, c := range s.setup.gates {
		if _, stays := next.gates[name]; !stays {
			c.Breaker.Force, c.Breaker.ForceReason = breaker.ForcedOpen, removedText("gate", name)
			err = errors.Join(err, s.gates[name].Reconfigure(c))
		}
	}
	for name, c := range s.setup.groups {
		if _, stays := next.groups[name]; !stays {
			c.Gate.Breaker.Force, c.Gate.Breaker.ForceReason = breaker.ForcedOpen, removedText("group", name)
			err = errors.Join(err, s.groups[name].Reconfigure(c))
		}
	}
	for name, c := range s.setup.limits {
		if _, stays := next.limits[name]; !stays {
			// the others keep their quotas
			c.Policies = append(slices.Clone(c.Policies), removedPolicy(c))
			err = errors.Join(err, s.limits[name].Reconfigure(c))
		}
	}
	return err
}

// removedText returns the reason why an object that was removed from the file refuses calls.
func removedText(kind, name string) string {
	return fmt.Sprintf("weirconfig: %s %q was removed from the configuration", kind, name)
}

// removedPolicy returns the policy that allows no request to a limit that is gone from the file.
// Its name differs from the names of the other policies.
func removedPolicy(c weirhttp.LimitConfig) weirhttp.Policy {
	name := "removed from the configuration"
	for n := 2; slices.ContainsFunc(c.Policies, func(p weirhttp.Policy) bool { return p.Name == name }); n++ {
		name = fmt.Sprintf("removed from the configuration %d", n)
	}
	return weirhttp.Policy{Name: name, By: weirhttp.ByNothing, Remote: func(string) limiter.Remote { return removedLimit{} }}
}

// removedLimit is a limit that allows no request.
type removedLimit struct{}

func (removedLimit) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{RetryAfter: limiter.Never, ResetAfter: limiter.Never}, nil
}

// lines returns the numbers of the lines of fields by their paths.
func (d *decoder) lines() map[string]int {
	lines := map[string]int{}
	for path, p := range maps.All(d.places) {
		lines[path] = p.line
	}
	return lines
}
