package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/ring"
)

// WindowConfig configures a [Window].
type WindowConfig struct {
	// Limit is the maximum number of tokens per window, from 1 to 2^31-1. Required.
	Limit int
	// Window is the length of a window, from 1ns to 36 years. Required.
	Window time.Duration
	// Buckets is the number of parts into which NewSlidingWindow divides the window, up to 100,000.
	// The other constructors do not use it. Default 10.
	Buckets int
	// CountRefused counts the tokens of refused requests as well, so that a caller that keeps
	// asking stays locked out. A request to a [Joint] counts if any limiter of the Joint refuses
	// it. Requests that wait do not count. Default false.
	CountRefused bool
	// MaxWaiters is the maximum number of callers that may wait at once. Further callers are
	// refused. Default no bound.
	MaxWaiters int
	// Name appears in errors and metrics. A limiter with a name keeps statistics and is a
	// [stat.Source]. Default none: no statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
}

const (
	maxWindow      = 36 * 365 * 24 * time.Hour // sums of times do not overflow
	maxBuckets     = 100_000
	defaultBuckets = 10
)

// Validate returns an error that names every invalid field, or nil.
func (c WindowConfig) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("limiter: "+format, args...)) }
	if c.Limit < 1 || c.Limit > math.MaxInt32 {
		fault("Limit is %d, must be between 1 and %d", c.Limit, math.MaxInt32)
	}
	if c.Window < 1 || c.Window > maxWindow {
		fault("Window is %s, must be above 0 and at most %s", c.Window, maxWindow)
	}
	if c.Buckets < 0 || c.Buckets > maxBuckets {
		fault("Buckets is %d, must be between 1 and %d (or 0 for the default)", c.Buckets, maxBuckets)
	}
	return errors.Join(append(faults, validateCommon(c.MaxWaiters, c.Name, c.Shadow))...)
}

// mustBeValid panics with an error of Validate.
func mustBeValid(err error) {
	if err != nil {
		panic(err)
	}
}

// validateCommon checks the fields that most configurations have.
func validateCommon(maxWaiters int, name string, shadow bool) error {
	var faults []error
	if maxWaiters < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", maxWaiters))
	}
	if shadow && name == "" {
		faults = append(faults, errors.New("limiter: Shadow is set without a Name, must have both"))
	}
	return errors.Join(faults...)
}

// Window allows up to Limit tokens per window of time. Its constructors differ in what they count,
// and so in the bound and in the memory: [NewFixedWindow], [NewSlidingWindow] and [NewSlidingLog].
//
// All methods are safe for concurrent use. Only Wait blocks. The zero value does not work: use one
// of the constructors.
type Window struct {
	named
	epoch        time.Time
	limit        int64
	window       time.Duration
	countRefused bool
	queue        waitQueue

	mu      sync.Mutex
	latest  time.Duration // the latest time of a request
	counter windowCounter
}

// windowCounter counts the tokens taken in a window. It never moves back in time.
type windowCounter interface {
	// advance moves the window forward to a time, or leaves it if it is already later. It returns
	// the number of tokens in the window.
	advance(at time.Duration) (used int64)
	// add counts n tokens at the time of the window, and stops at the limit.
	add(n int64)
	// charge counts n tokens at the time of the window, also beyond the limit, as long as the count
	// does not overflow.
	charge(n int64)
	// refund removes n tokens from the count, the oldest first, so that no window exceeds the
	// limit.
	refund(n int64)
	// covers reports whether tokens taken at a time still count.
	covers(at time.Duration) bool
	// earliest returns the earliest time at which n tokens can be taken.
	earliest(n int64) time.Duration
	// renewed returns a counter of the same window that has counted nothing.
	renewed() windowCounter
}

// newWindow returns a limiter for times from epoch on. c is valid.
func newWindow(c WindowConfig, epoch time.Time, counter windowCounter) *Window {
	l := &Window{epoch: epoch, limit: int64(c.Limit), window: c.Window, countRefused: c.CountRefused, latest: firstPosition, counter: counter}
	l.statistics = newStatistics(c.Name, c.Shadow, func() (Result, time.Duration) { return l.peek(time.Now(), 0, 0), l.window })
	l.queue.maxWaiters = c.MaxWaiters
	l.queue.keepStatistics(l.statistics)
	return l
}

// Take takes n tokens, or none if there are fewer. In shadow mode the result is always OK, with the
// numbers of the refusal if no tokens were taken.
func (l *Window) Take(n int) Result {
	return l.record(l.takeAt(time.Since(l.epoch), n, l.countRefused, clock.ReadTolerance), n)
}

// TakeAt is Take at the time t.
func (l *Window) TakeAt(t time.Time, n int) Result {
	return l.record(l.takeAt(t.Sub(l.epoch), n, l.countRefused, clock.GivenTolerance), n)
}

// Wait takes n tokens as soon as there are that many. See [TokenBucket.Wait].
func (l *Window) Wait(ctx context.Context, n int) error { return wait(ctx, l, n) }

func (l *Window) waitTaken(ctx context.Context, n int, maxWait time.Duration, w *waiter) (taken, error) {
	return l.queue.wait(ctx, l, n, maxWait, w)
}

func (l *Window) period() time.Duration { return l.window }

// takeAt takes n tokens, unless callers wait in the queue. It does not count the request in the
// statistics.
func (l *Window) takeAt(at time.Duration, n int, countRefused bool, tolerance time.Duration) (r Result) {
	if l.queue.waitingTokens.Load() != 0 {
		return l.peekAt(at, 0, n)
	}
	return l.acquireAt(at, int64(n), countRefused, tolerance)
}

// peekAt returns the answer that Take(n) would give if ahead more tokens were taken before it. It
// respects the queue, as takeAt does. predictAt and acquireAt do not.
func (l *Window) peekAt(at time.Duration, ahead int64, n int) Result {
	waiting := l.queue.waitingTokens.Load()
	r := l.predictAt(at, waiting+ahead, n)
	if waiting != 0 {
		refuseBehindWaiters(&r, n)
	}
	return r
}

func (l *Window) acquire(n int) (Result, taken) {
	at := time.Since(l.epoch)
	r := l.acquireAt(at, int64(n), false, clock.ReadTolerance)
	return r, takenBy(r, at, n)
}

// acquireAt takes n tokens without regard to the queue.
func (l *Window) acquireAt(at time.Duration, n int64, countRefused bool, tolerance time.Duration) Result {
	at = clampTime(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restart(at, tolerance)
	l.latest = max(l.latest, at)
	left := l.limit - l.counter.advance(at)
	if n > 0 && (n <= left || countRefused && n <= l.limit) {
		l.counter.add(n)
	}
	r := l.describe(at, n <= left, n)
	if n < 0 || n > l.limit {
		r.OK, r.RetryAfter = false, Never
	}
	return r
}

// restart empties the window if its clock is a new one: see clock.IsNew. The caller holds the lock.
func (l *Window) restart(at, tolerance time.Duration) bool {
	isNew := clock.IsNew(l.epoch, at, l.latest, tolerance)
	if isNew {
		l.latest, l.counter = at, l.counter.renewed()
	}
	return isNew
}

func (l *Window) restartIfNew(t time.Time, tolerance time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restart(clampTime(t.Sub(l.epoch)), tolerance)
}

func (l *Window) predict(ahead int64, n int) Result {
	return l.predictAt(time.Since(l.epoch), ahead, n)
}

// predictAt returns the answer that acquireAt would give if ahead more tokens were taken first. It
// takes nothing.
func (l *Window) predictAt(at time.Duration, ahead int64, n int) Result {
	at = clampTime(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	total := ahead + int64(n)
	r := l.describe(at, total <= l.limit-l.counter.advance(at), total)
	if n < 0 || int64(n) > l.limit {
		r.OK, r.RetryAfter = false, Never
	}
	return r
}

// describe returns the answer to a request for n tokens. The caller holds the lock.
func (l *Window) describe(at time.Duration, ok bool, n int64) Result {
	used := l.counter.advance(at)
	r := Result{OK: ok, Limit: int(l.limit), Remaining: int(max(l.limit-used, 0))}
	if used > 0 {
		r.ResetAfter = timeUntil(l.counter.earliest(l.limit), at)
	}
	if !ok {
		r.RetryAfter = timeUntil(l.counter.earliest(max(n, 0)), at)
	}
	return r
}

func (l *Window) peek(t time.Time, ahead int64, n int) Result {
	return l.peekAt(t.Sub(l.epoch), ahead, n)
}

func (l *Window) tryTake(t time.Time, n int, c counting) (Result, taken) {
	at := t.Sub(l.epoch)
	r := l.takeAt(at, n, c == refusedToo && l.countRefused, clock.ReadTolerance)
	return r, takenBy(r, at, n)
}

// putBack gives back tokens that still count. Those that no longer count have left the window by
// themselves.
func (l *Window) putBack(_ time.Time, back taken, n int) taken {
	l.mu.Lock()
	if l.counter.covers(clampTime(back.at)) {
		l.counter.refund(int64(back.use(n)))
	}
	l.mu.Unlock()
	l.queue.wakeFirst()
	return back
}

// charge counts tokens that were used beyond those taken.
func (l *Window) charge(now time.Time, _ taken, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := clampTime(now.Sub(l.epoch))
	l.latest = max(l.latest, at)
	l.counter.advance(at)
	l.counter.charge(int64(n))
}

func (l *Window) refusedByJoint(t time.Time, n int, r Result, waited bool) {
	l.recordRefusal(r, n)
	if l.countRefused && !waited {
		l.takeAt(t.Sub(l.epoch), n, true, clock.GivenTolerance)
	}
}

func (l *Window) subscribe(w wakeup)   { l.queue.subscribe(w) }
func (l *Window) unsubscribe(w wakeup) { l.queue.unsubscribe(w) }

// clampTime returns the nearest time whose distance from any other such time does not overflow.
func clampTime(at time.Duration) time.Duration { return min(max(at, firstPosition), lastPosition) }

// timeUntil returns the time from now until at: 0 if at has passed, Never if at is Never.
func timeUntil(at, now time.Duration) time.Duration {
	if at == Never {
		return Never
	}
	return max(at-now, 0)
}

// addWindows returns the time n windows after at, or Never if that is too late.
func addWindows(at time.Duration, n int64, window time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(n), uint64(window))
	if high > 0 || low > uint64(lastPosition) || at > lastPosition-time.Duration(low) {
		return Never
	}
	return at + time.Duration(low)
}

// NewFixedWindow returns a limiter that allows up to Limit tokens in each window. Windows are
// aligned to the Unix time that the wall clock shows when the limiter is created: windows of a
// minute begin at full minutes, windows of a day at midnight UTC. Later steps of the wall clock do
// not move them.
//
// It is the simplest limiter to explain (INCR and EXPIRE in Redis) and has the loosest bound: it
// may allow up to twice Limit almost at once, around the end of one window and the start of the
// next. RetryAfter is minimal.
//
// NewFixedWindow panics with the error of c.Validate if c is invalid.
func NewFixedWindow(c WindowConfig) *Window { return newFixedWindow(c, time.Now()) }

func newFixedWindow(c WindowConfig, t0 time.Time) *Window {
	mustBeValid(c.Validate())
	phase := time.Duration(t0.UnixNano()) % c.Window
	if phase < 0 {
		phase += c.Window
	}
	// long before t0, because TakeAt may be called with an earlier time
	begin := -phase + firstPosition/c.Window*c.Window
	return newWindow(c, t0, &fixedCounter{window: c.Window, begin: begin, limit: int64(c.Limit)})
}

// fixedCounter counts the tokens since begin, the start of the current window.
type fixedCounter struct {
	window, begin time.Duration
	limit, count  int64
}

func (f *fixedCounter) advance(at time.Duration) int64 {
	if at-f.begin >= f.window {
		windows := int64((at - f.begin) / f.window)
		f.begin += time.Duration(windows) * f.window
		f.count = max(f.count-product(windows, f.limit, maxCapacity), 0) // a debt stays
	}
	return f.count
}

// add stops at the limit, so that refused requests are never counted beyond a full window.
func (f *fixedCounter) add(n int64) { f.count = max(f.count, min(f.count+n, f.limit)) }

func (f *fixedCounter) charge(n int64) { f.count += min(n, lastPosition-f.count) }

func (f *fixedCounter) renewed() windowCounter {
	begin := f.begin % f.window
	if begin > 0 {
		begin -= f.window
	}
	return &fixedCounter{window: f.window, begin: begin + firstPosition/f.window*f.window, limit: f.limit}
}

func (f *fixedCounter) covers(at time.Duration) bool { return at >= f.begin }

func (f *fixedCounter) refund(n int64) { f.count = max(f.count-n, 0) }

func (f *fixedCounter) earliest(n int64) time.Duration {
	beyond := n - (f.limit - f.count)
	if beyond <= 0 {
		return f.begin
	}
	return addWindows(f.begin, (beyond+f.limit-1)/f.limit, f.window)
}

// NewSlidingWindow returns a limiter that allows at most Limit tokens in any window, wherever it
// begins. The window has Buckets parts, and tokens are counted in these parts and in one part more.
// So a token comes back up to one part late: with 10 parts, after up to 1.1 windows.
//
//	      ┌────────── Window ──────────┐
//	|  3  |  0  |  5  |  1  |  0  |  2  |
//	└─ counted, although only a part of it is in the window
//
// The limiter uses 16 bytes for each part and for two more. RetryAfter is minimal for the tokens it
// counts.
//
// NewSlidingWindow panics with the error of c.Validate if c is invalid.
func NewSlidingWindow(c WindowConfig) *Window { return newSlidingWindow(c, time.Now()) }

func newSlidingWindow(c WindowConfig, t0 time.Time) *Window {
	mustBeValid(c.Validate())
	buckets := cmp.Or(c.Buckets, defaultBuckets)
	width := (int64(c.Window) + int64(buckets) - 1) / int64(buckets)
	return newWindow(c, t0, newRingCounter(width, int64(buckets), int64(c.Limit)))
}

// ringCounter counts the tokens in the newest bucket and the span buckets before it. The ring
// holds, for each bucket, the value of total when the bucket began.
type ringCounter struct {
	ring   *ring.Ring
	span   int64
	limit  int64
	total  int64 // all tokens ever counted
	begun  bool
	origin int64 // the start of the bucket of the first time, from which the ring counts
}

func newRingCounter(width, span, limit int64) *ringCounter {
	return &ringCounter{ring: ring.New(width, int(span), 1), span: span, limit: limit}
}

func (r *ringCounter) renewed() windowCounter {
	return newRingCounter(r.ring.Width(), r.span, r.limit)
}

func (r *ringCounter) advance(at time.Duration) int64 {
	if !r.begun {
		r.begun, r.origin = true, r.ring.Start(r.ring.Bucket(int64(at)))
	}
	r.ring.Advance(r.bucket(at), []int64{r.total})
	return r.total - r.totalBefore(r.ring.Newest())
}

func (r *ringCounter) bucket(at time.Duration) int64 { return r.ring.Bucket(int64(at) - r.origin) }

func (r *ringCounter) covers(at time.Duration) bool { return r.bucket(at) >= r.ring.Newest()-r.span }

// totalBefore returns the part of total that no longer counts once bucket is the newest.
func (r *ringCounter) totalBefore(bucket int64) int64 {
	if bucket -= r.span; bucket <= r.ring.Newest() {
		return r.ring.Row(bucket)[0].Load()
	}
	return r.total
}

// add stops when the newest bucket alone has reached the limit, so that refused requests are never
// counted beyond that.
func (r *ringCounter) add(n int64) {
	inNewest := r.total - r.ring.Row(r.ring.Newest())[0].Load()
	r.total += min(n, max(r.limit-inNewest, 0))
}

func (r *ringCounter) charge(n int64) { r.total += min(n, max(lastPosition-r.total, 0)) }

func (r *ringCounter) refund(n int64) {
	newest := r.ring.Newest()
	expired := r.totalBefore(newest)
	least := expired + min(n, r.total-expired)
	for b := newest - r.span; b <= newest; b++ {
		if total := &r.ring.Row(b)[0]; total.Load() < least {
			total.Store(least)
		}
	}
}

func (r *ringCounter) earliest(n int64) time.Duration {
	windows := max(n-1, 0) / r.limit
	expired := r.total - (r.limit - (n - windows*r.limit)) // how much of total must no longer count
	newest := r.ring.Newest()
	steps := sort.Search(int(r.span)+1, func(i int) bool { return r.totalBefore(newest+int64(i)) >= expired })
	begin := time.Duration(r.origin + r.ring.Start(newest+int64(steps)))
	// a token that is taken as soon as one comes back, when a bucket begins, counts in span more
	return addWindows(begin, windows, time.Duration((r.span+1)*r.ring.Width()))
}

// NewSlidingLog returns a limiter that allows exactly Limit tokens in any window: it remembers when
// each token was taken, and each comes back after Window. RetryAfter is minimal.
//
// Limiters on a Redis sorted set and Redisson's RRateLimiter work like this. The limiter uses 20 to
// 32 bytes for each moment in the window at which tokens were taken. There are at most Limit such
// moments. If that is too much memory, use [NewSlidingWindow]. Memory is released as the log
// shrinks.
//
// NewSlidingLog panics with the error of c.Validate if c is invalid.
func NewSlidingLog(c WindowConfig) *Window { return newSlidingLog(c, time.Now()) }

func newSlidingLog(c WindowConfig, t0 time.Time) *Window {
	mustBeValid(c.Validate())
	return newWindow(c, t0, &logCounter{window: c.Window, limit: int64(c.Limit), newest: firstPosition})
}

// logCounter counts the tokens in a log of entries.
type logCounter struct {
	window  time.Duration
	limit   int64
	newest  time.Duration // the latest time given to advance
	log     []logEntry
	skip    int   // entries at the front of the log that no longer count
	total   int64 // all tokens ever counted
	expired int64 // the part of total that no longer counts
}

// logEntry is a time at which tokens were taken, with the total number taken up to then.
type logEntry struct {
	at    time.Duration
	total int64
}

func (l *logCounter) renewed() windowCounter {
	return &logCounter{window: l.window, limit: l.limit, newest: firstPosition}
}

func (l *logCounter) advance(at time.Duration) int64 {
	l.newest = max(l.newest, at)
	for l.skip < len(l.log) && !l.covers(l.log[l.skip].at) {
		l.expired = max(l.expired, l.log[l.skip].total)
		l.skip++
	}
	return l.total - l.expired
}

func (l *logCounter) covers(at time.Duration) bool { return l.newest-at < l.window }

func (l *logCounter) add(n int64) {
	beyond := l.total - l.expired + n - l.limit
	if beyond > n { // refused requests do not count while there is a debt, which they would replace
		return
	}
	// if refused requests count, only the latest Limit tokens matter
	l.refund(beyond)
	l.append(n)
}

func (l *logCounter) charge(n int64) { l.append(min(n, max(lastPosition-l.total, 0))) }

func (l *logCounter) append(n int64) {
	l.total += n
	if last := len(l.log) - 1; last >= l.skip && l.log[last].at == l.newest {
		l.log[last].total = l.total
		return
	}
	l.compact()
	l.log = append(l.log, logEntry{l.newest, l.total})
}

// compact moves the log to the front of its array if the array is full and more than an eighth of
// it becomes free. It moves the log to a smaller array if the log needs less than an eighth of the
// array.
func (l *logCounter) compact() {
	const least = 64
	left := l.log[l.skip:]
	switch {
	case cap(l.log) > least && len(left) < cap(l.log)/8:
		l.log = append(make([]logEntry, 0, cap(l.log)/4), left...)
	case len(l.log) == cap(l.log) && l.skip > len(l.log)/8:
		l.log = l.log[:copy(l.log, left)]
	default:
		return
	}
	l.skip = 0
}

func (l *logCounter) refund(n int64) {
	if n > 0 {
		l.expired += min(n, l.total-l.expired)
	}
	for l.skip < len(l.log) && l.log[l.skip].total <= l.expired {
		l.skip++
	}
}

func (l *logCounter) earliest(n int64) time.Duration {
	windows := max(n-1, 0) / l.limit
	beyond := n - windows*l.limit - (l.limit - (l.total - l.expired))
	if beyond <= 0 {
		return addWindows(l.newest, windows, l.window)
	}
	left := l.log[l.skip:]
	last := sort.Search(len(left)-1, func(i int) bool { return left[i].total >= l.expired+beyond })
	return addWindows(left[last].at+l.window, windows, l.window)
}
