package sim

import (
	"context"
	"errors"
	"sync"
	"time"
)

// record describes one attempt that a guard lets through.
type record struct {
	*attempt
	from, to time.Duration
	result   error
	ctxErr   error // of the context after the attempt
}

// took is the time that the attempt took.
func (r record) took() time.Duration { return r.to - r.from }

// recorder returns a guard that lets everything through and records it, in the order of the ends.
func recorder(into *[]record) Maker {
	var mu sync.Mutex
	return Maker{Name: "recorder", New: func(s Setting) Guard {
		return testGuard(func(ctx context.Context, f func(context.Context) error) error {
			from := s.run.now()
			err := f(ctx)
			rec := record{ctx.(*deadline).attempt, from, s.run.now(), err, ctx.Err()}
			mu.Lock()
			defer mu.Unlock()
			*into = append(*into, rec)
			return err
		})
	}}
}

// testGuard is a guard without state.
type testGuard func(ctx context.Context, f func(context.Context) error) error

func (g testGuard) Call(ctx context.Context, f func(context.Context) error) error { return g(ctx, f) }

func (g testGuard) Refusal(err error) (time.Duration, bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.retryAfter, true
	}
	return 0, false
}

func (g testGuard) Openings() int { return 0 }

// refusal is the error of a testGuard that refuses.
type refusal struct{ retryAfter time.Duration }

func (*refusal) Error() string { return "refused" }

// runRecorded runs a world with a recorder.
func runRecorded(w World, seed uint64) ([]record, Figures) {
	var records []record
	f := Run(w, recorder(&records), seed)
	return records, f
}
