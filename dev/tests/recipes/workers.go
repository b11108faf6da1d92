package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// Job is a job of Work.
type Job struct{ ID int }

//readme:workers

// Work does jobs until the channel is closed, and reports the result of each. It keeps a job that
// the gate refuses, and tries it again when the gate may allow it.
func Work(ctx context.Context, gate *weir.Gate, jobs <-chan Job, do func(context.Context, Job) error, report func(Job, error)) {
	for job := range jobs {
		var err error
		for wait := time.Duration(0); wait != limiter.Never; wait = weir.RetryAfter(err) {
			select {
			case <-time.After(wait):
			case <-ctx.Done(): // Run returns the error of ctx
			}
			err = gate.Run(ctx, func(ctx context.Context) error { return do(ctx, job) })
			if !errors.Is(err, weir.ErrRefused) {
				break
			}
		}
		report(job, err)
	}
}

//readme:end
