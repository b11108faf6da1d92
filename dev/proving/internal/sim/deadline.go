package sim

import (
	"context"
	"time"
)

// deadline is the context of an attempt. It is not one of package context, because the timer of
// such a context fires while its process is suspended, and is one more timer of the runtime.
type deadline struct {
	run     *run
	attempt *attempt // whose context it is
	at      time.Duration
	silent  bool // the guard is not told the deadline, and sees a cancellation
	err     error
	done    chan struct{} // nil until it is asked for
	after   map[*func()]struct{}
}

func (d *deadline) Deadline() (time.Time, bool) {
	if d.silent {
		return time.Time{}, false
	}
	return d.run.began.Add(d.at), true
}

func (d *deadline) Done() <-chan struct{} {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		if d.err != nil {
			close(d.done)
		}
	}
	return d.done
}

func (d *deadline) Err() error {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	return d.err
}

func (d *deadline) Value(key any) any {
	switch key {
	case hostKey{}:
		return d.attempt.host
	case sentKey{}:
		return d.attempt.call.sent
	}
	return nil
}

type hostKey struct{}

// Host returns the index of the host that an attempt with the context goes to, for the guard of a
// client that chooses the host itself.
func Host(ctx context.Context) int {
	host, _ := ctx.Value(hostKey{}).(int)
	return host
}

type sentKey struct{}

// SentBefore returns how many attempts of the same call were sent before the attempt with the
// context: the attempt is a retry if there is one.
func SentBefore(ctx context.Context) int {
	sent, _ := ctx.Value(sentKey{}).(int)
	return sent
}

// AfterFunc lets package context derive contexts from d without a goroutine for each.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	if d.err != nil {
		go f()
		return func() bool { return false }
	}
	if d.after == nil {
		d.after = map[*func()]struct{}{}
	}
	key := &f
	d.after[key] = struct{}{}
	return func() bool {
		d.run.mu.Lock()
		defer d.run.mu.Unlock()
		_, waits := d.after[key]
		delete(d.after, key)
		return waits
	}
}

// end ends the context, with the lock held.
func (d *deadline) end(err error) {
	if d.err != nil {
		return
	}
	d.err = err
	if d.done != nil {
		close(d.done)
	}
	for f := range d.after {
		go (*f)()
	}
	d.after = nil
}

var _ context.Context = (*deadline)(nil)
