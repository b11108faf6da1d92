package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirtest"
)

// results keeps what workers report.
type results struct {
	mu   sync.Mutex
	errs map[int][]error // of each job
}

func (r *results) report(job recipes.Job, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs[job.ID] = append(r.errs[job.ID], err)
}

func (r *results) count(t *testing.T, jobs int) (failed int) {
	t.Helper()
	require.Len(t, r.errs, jobs)
	for id, errs := range r.errs {
		require.Len(t, errs, 1, "job %d", id)
		require.NotErrorIs(t, errs[0], weir.ErrRefused)
		if errs[0] != nil {
			failed++
		}
	}
	return failed
}

func TestWorkersPauseDuringAnOutageAndLoseNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 1000
		var service weirtest.Service
		gate := weir.New("mail", weir.Config{Rate: limiter.PerSecond(100), Burst: 1, MaxWait: time.Minute, Breaker: breaker.Config{Cooldown: 5 * time.Second}})
		queue := make(chan recipes.Job)
		all := results{errs: map[int][]error{}}
		worker := recipes.Worker{Gate: gate, Do: func(ctx context.Context, _ recipes.Job) error { return service.Call(ctx) }, Report: all.report}
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() { worker.Work(t.Context(), queue) })
		}
		time.AfterFunc(2*time.Second, func() { service.Always(weirtest.Answer{Err: weirtest.ErrDown}) })
		time.AfterFunc(62*time.Second, func() { service.Always(weirtest.Answer{}) })
		for id := range jobs {
			queue <- recipes.Job{ID: id}
		}
		close(queue)
		workers.Wait()
		totals := gate.Totals()
		failed := all.count(t, jobs)
		require.Equal(t, jobs, service.Calls(), "each job is one call")
		require.EqualValues(t, failed, totals.Failures)
		require.Less(t, failed, jobs/4, "workers do not pause")
		require.Greater(t, totals.Refused, int64(8), "workers keep refused jobs")
	})
}

func TestWorkersStopWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gate := weir.New("mail", weir.Config{})
		gate.Breaker().OpenFor(time.Hour)
		time.AfterFunc(time.Minute, cancel)
		queue := make(chan recipes.Job, 2)
		queue <- recipes.Job{ID: 1}
		queue <- recipes.Job{ID: 2}
		close(queue)
		all := results{errs: map[int][]error{}}
		start := time.Now()
		worker := recipes.Worker{Gate: gate, Do: func(context.Context, recipes.Job) error { return errors.New("called") }, Report: all.report}
		worker.Work(ctx, queue)
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, map[int][]error{1: {context.Canceled}, 2: {context.Canceled}}, all.errs, "the caller can put them back")
	})
}

func TestAJobThatIsNeverAllowedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("mail", weir.Config{Rate: limiter.PerSecond(1), Burst: limiter.Off})
		queue := make(chan recipes.Job, 1)
		queue <- recipes.Job{ID: 1}
		close(queue)
		all := results{errs: map[int][]error{}}
		worker := recipes.Worker{Gate: gate, Do: func(context.Context, recipes.Job) error { return nil }, Report: all.report}
		worker.Work(t.Context(), queue)
		require.ErrorIs(t, all.errs[1][0], limiter.ErrLimited)
	})
}
