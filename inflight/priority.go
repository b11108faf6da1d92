package inflight

import (
	"context"
	"fmt"
)

// Priority orders the callers that wait. All priorities get slots: see [Queue].
type Priority int8

// The priorities, from the most to the least important.
const (
	Critical   Priority = 1  // a user waits, and nothing works without this call
	Normal     Priority = 0  // the default
	Low        Priority = -1 // can be tried again, such as a prefetch
	Background Priority = -2 // no user waits, such as for a nightly job
)

const priorities = int(Critical-Background) + 1

var priorityNames = [priorities]string{"critical", "normal", "low", "background"}

// class returns the index of the priority, 0 for the most important. A priority outside the range
// counts as the nearest valid priority.
func (p Priority) class() int { return int(Critical - min(max(p, Background), Critical)) }

// String returns the word of the priority, such as "critical".
func (p Priority) String() string { return priorityNames[p.class()] }

// MarshalText returns the word of the priority. It fails for a priority that has none.
func (p Priority) MarshalText() ([]byte, error) {
	if p < Background || p > Critical {
		return nil, fmt.Errorf("inflight: priority %d, must be between %d and %d", int8(p), Background, Critical)
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads the word of a priority.
func (p *Priority) UnmarshalText(text []byte) error {
	for i, name := range priorityNames {
		if name == string(text) {
			*p = Critical - Priority(i)
			return nil
		}
	}
	return fmt.Errorf("inflight: priority %q, must be one of %q", text, priorityNames)
}

// Caller describes the caller that asks for a slot: see [WithCaller].
type Caller struct {
	// Priority decides how soon the caller gets a slot while others wait. Default Normal.
	Priority Priority
	// Tenant names the tenant of the caller, such as a customer. The tenants that wait share the
	// slots of a priority fairly. All callers with the same name are one tenant. Default "", which
	// is a tenant like any other.
	Tenant string
	// Retry says that the same call was tried before. If the queue is full, retries leave it before
	// the other callers of their priority, but after all callers of a lower priority. Default
	// false.
	Retry bool
}

type callerKey struct{}

// WithCaller returns a context for calls of c. Every limiter that gets it, or a context derived
// from it, takes c for the caller if the call has to wait or is refused. Without WithCaller the
// caller is the zero Caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the Caller of the last WithCaller for ctx, or the zero Caller.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
