package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// Job is a job of a Worker.
type Job struct{ ID int }

// Worker does jobs. Several goroutines may use it.
type Worker struct {
	Gate   *weir.Gate
	Do     func(context.Context, Job) error
	Report func(Job, error)
}

//readme:workers

// Work does jobs until the channel is closed, and reports the result of each. It keeps a job that
// the gate refuses, and tries it again when the gate may allow it.
func (w *Worker) Work(ctx context.Context, jobs <-chan Job) {
	for job := range jobs {
		var err error
		for wait := time.Duration(0); wait != limiter.Never; wait = weir.RetryAfter(err) {
			select {
			case <-time.After(wait):
			case <-ctx.Done(): // Run returns the error of ctx
			}
			err = w.Gate.Run(ctx, func(ctx context.Context) error { return w.Do(ctx, job) })
			if !errors.Is(err, weir.ErrRefused) {
				break
			}
		}
		w.Report(job, err)
	}
}

//readme:end
