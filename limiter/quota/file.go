package quota

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/journal"
	"github.com/weir-go/weir/stat"
)

const (
	fileFormat = "weir-quota 1"
	// maxFileKeys is how many keys fit into a journal: a record has 80 to 98 bytes.
	maxFileKeys = 150_000
	// mostDeleted bounds how many records of the period before a write deletes, so that the first
	// request of a period does not wait for all of them.
	mostDeleted = 1000
)

// retryPause is how long a file is left alone after a write has failed, so that not every request
// waits for an error.
const retryPause = time.Second

// file keeps counts in a journal. A request returns only when the file says that its tokens are
// used. A write says so for up to 1 % of the limit in advance, and one write is for all requests
// that wait for one.
type file struct {
	unsaved atomic.Int64 // requests that were allowed although the file does not have them
	series  atomic.Pointer[stat.Series]

	mu      sync.Mutex       // held during a write
	path    string           // "" before Open
	journal *journal.Journal // nil without a file

	// Guarded by Group.mu:
	err      error     // of the last write
	failedAt time.Time // when it failed
}

// Open makes the quotas survive the end of the process. It reads what the keys have used from the
// file, and creates the file with the first token if there is none. Call it once, before the first
// request, and Close at the end.
//
// A request is allowed only when the file says that its tokens are used, so an end of the process
// or a loss of power at any moment gives no token twice. A write is made for up to 1 % of Limit in
// advance, so such an end can cost a key up to 1 % of its quota, and what it got back just before.
// With a Limit below 200, each token is a write of its own. A request that needs a write waits for
// it, usually some milliseconds. Other requests do not, and requests that wait at the same time
// share one write. The file has the SHA-256 of each key, not the key.
//
// If a write fails, requests are allowed and counted as without a file, and the next write has what
// the failed one had. The failure is logged to slog.Default, [Group.Err] returns it, and the metric
// weir.limiter.backend.errors counts the requests that it may let pass again after a restart.
//
// Open returns an error if the file cannot be used, if it is no file of quotas, or if another
// process uses it (Unix only). The group works without a file then. A file with damaged records is
// used without them, which is logged. After a change of Every or Zone, the file counts as far as
// it is known what was used in the present period.
func (g *Group) Open(path string) error {
	if g.counts.maxKeys > maxFileKeys {
		return fmt.Errorf("quota: MaxKeys is %d, must be at most %d with a file", g.counts.maxKeys, maxFileKeys)
	}
	damaged, err := g.open(path)
	if damaged > 0 {
		slog.Warn("quota: file has damaged records, using the others", "quota", g.name, "file", path, "records", damaged)
	}
	return err
}

func (g *Group) open(path string) (damaged int, err error) {
	f := &g.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path != "" {
		return 0, errors.New("quota: Open was called before with " + f.path)
	}
	j, damaged, err := journal.Open(path, fileFormat)
	if err != nil {
		return 0, fmt.Errorf("quota: file %s: %w", path, err)
	}
	records, invalid := readRecords(j)
	g.mu.Lock()
	g.advanceTo(time.Time{})
	g.counts.load(records)
	g.mu.Unlock()
	f.journal = j
	if err = g.commit(false); err != nil {
		err = fmt.Errorf("quota: file %s: %w", path, errors.Join(err, f.stop(g)))
	} else {
		f.path = path
	}
	return damaged + invalid, err
}

// Close writes what the keys have used and releases the file. The quotas work as without a file
// afterwards. Without a file it does nothing.
func (g *Group) Close() error {
	f := &g.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.journal == nil {
		return nil
	}
	g.mu.Lock()
	for id, u := range g.counts.keys {
		g.counts.changed(id, u)
	}
	g.mu.Unlock()
	if err := errors.Join(g.commit(true), f.stop(g)); err != nil {
		return fmt.Errorf("quota: file %s: %w", f.path, err)
	}
	return nil
}

// stop stops the use of the file. The caller holds f.mu.
func (f *file) stop(g *Group) error {
	j := f.journal
	f.journal = nil
	g.mu.Lock()
	g.counts.dirty, g.counts.gone = nil, nil
	g.mu.Unlock()
	return j.Close()
}

// Err returns the error of the last write to the file, or nil if it succeeded or there is no file.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.file.err
}

// observe yields the number of requests that are not in the file, if there are any.
func (f *file) observe(name string, created time.Time, yield func(*stat.Series, float64) bool) bool {
	n := f.unsaved.Load()
	if n > 0 && f.series.Load() == nil {
		s := instrument.LimiterBackendErrors.Series(name, "file")
		s.Created = created
		f.series.CompareAndSwap(nil, s)
	}
	return n == 0 || yield(f.series.Load(), float64(n))
}

// writing is a write that a request needs. The zero value is none.
type writing struct {
	usage *usage
	used  int64 // what the file has to say about usage before the request may return
	soon  bool  // the write is useful, but need not be waited for
}

// lease is how many tokens a write declares as used at once.
func (c *counts) lease() int64 { return max(c.limit/100, 1) }

// writingOf returns the write that is needed after a key has used more. u may be nil.
func (c *counts) writingOf(id keyID, u *usage) (w writing) {
	switch {
	case u == nil || c.dirty == nil:
	case u.used > u.durable:
		w = writing{usage: u, used: u.used}
	case u.durable < c.limit && u.durable-u.used < c.lease()/2:
		// so that requests at the same time have the rest of the lease during the write
		c.changed(id, u)
		w.soon = true
	}
	return w
}

// write makes a write that a request needs, unless another request has made it.
func (g *Group) write(w writing) {
	f := &g.file
	switch {
	case w.usage != nil:
		f.mu.Lock()
	case !w.soon || !f.mu.TryLock():
		return
	}
	g.mu.Lock()
	was := f.err
	skip := w.usage != nil && w.usage.durable >= w.used
	paused := was != nil && time.Since(f.failedAt).Abs() < retryPause
	g.mu.Unlock()
	err := was
	if f.journal != nil && !skip && !paused {
		err = g.commit(false)
	}
	if err != nil && w.usage != nil && !skip {
		f.unsaved.Add(1)
	}
	path := f.path
	f.mu.Unlock()
	switch { // without the lock, because the handler is the user's
	case err != nil && was == nil:
		slog.Error("quota: file cannot be written, will retry", "quota", g.name, "file", path, "error", err.Error())
	case err == nil && was != nil:
		slog.Info("quota: file is written again", "quota", g.name, "file", path)
	}
}

// saved is a record that is to be written.
type saved struct {
	id     keyID
	usage  *usage
	start  int64
	target int64
}

// commit writes all records that have changed, with what was used exactly or with leases. The
// caller holds f.mu.
func (g *Group) commit(exact bool) error {
	g.mu.Lock()
	batch, gone := g.counts.collect(exact)
	g.mu.Unlock()
	err := g.file.save(batch, gone)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.file.err, g.file.failedAt = err, time.Now()
	for _, s := range batch {
		switch {
		case err == nil:
			s.usage.durable = s.target
		case g.counts.keys[s.id] == s.usage:
			g.counts.dirty[s.id] = s.usage
		}
	}
	if err != nil {
		g.counts.gone = append(gone, g.counts.gone...)
	}
	return err
}

// collect returns the records that have changed, and those of keys that have used nothing.
func (c *counts) collect(exact bool) (batch []saved, gone []keyID) {
	start := c.period.start.Unix()
	for id, u := range c.dirty {
		target := u.used
		if !exact {
			target += max(min(c.lease()-1, c.limit-u.used), 0)
		}
		// Until it is known which of the two the file has:
		u.durable = min(u.durable, target)
		batch = append(batch, saved{id, u, start, target})
	}
	clear(c.dirty)
	// At least as many as are added, so that the records do not exceed the size of a journal.
	n := min(mostDeleted+len(batch), len(c.gone))
	for _, id := range c.gone[:n] {
		if c.keys[id] == nil { // otherwise it has another record by now
			gone = append(gone, id)
		}
	}
	c.gone = c.gone[n:]
	return batch, gone
}

// save writes the records.
func (f *file) save(batch []saved, gone []keyID) error {
	for _, id := range gone {
		f.journal.Delete(recordKey(id))
	}
	for _, s := range batch {
		if err := f.journal.Set(recordKey(s.id), [2]int64{s.start, s.target}); err != nil {
			return err
		}
	}
	return f.journal.Commit()
}

func recordKey(id keyID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// record is what a key has used in the period from start on.
type record struct {
	id    keyID
	start time.Time
	used  int64
}

// readRecords returns the records of a file. It deletes those that are invalid.
func readRecords(j *journal.Journal) (all []record, invalid int) {
	for key, value := range j.All {
		var content [2]int64
		id, err := base64.RawURLEncoding.DecodeString(key)
		if err != nil || len(id) != len(keyID{}) || json.Unmarshal(value, &content) != nil || content[1] < 1 {
			j.Delete(key)
			invalid++
			continue
		}
		all = append(all, record{keyID(id), time.Unix(content[0], 0), min(content[1], maxUsed)})
	}
	return all, invalid
}

// load adds what the records say to what was used since New, and begins to note changes.
func (c *counts) load(records []record) {
	c.dirty, c.gone = map[keyID]*usage{}, nil
	for _, r := range records {
		// As after a clock that was set back: see advance.
		if p := c.calendar.at(r.start); p.start.After(c.period.start) && !c.period.end.Before(p.start) {
			c.period = p
		}
	}
	for id, u := range c.keys {
		c.changed(id, u)
	}
	for _, r := range records {
		if r.start.Before(c.period.start) {
			c.gone = append(c.gone, r.id)
			continue
		}
		u := c.add(r.id, r.used)
		if u.durable = r.used; u.used == r.used && r.start.Equal(c.period.start) {
			delete(c.dirty, r.id)
		} else {
			c.changed(r.id, u)
		}
	}
}
