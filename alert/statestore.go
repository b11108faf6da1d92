package alert

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/journal"
)

// stateStore keeps the state of the alerts in a journal.
//
// Each evaluation writes what has changed before its alerts are queued, and each delivery writes
// its alerts before the next delivery of the same notifier. So the file has every alert that a
// receiver may have heard of. For each notifier, the file lacks at most one delivery that the
// receiver got.
type stateStore struct {
	path string

	mu         sync.Mutex
	journal    *journal.Journal // nil until the file has been read
	marks      map[string]mark  // by the key of the record
	evaluation int64
	deliverers []*deliverer
	failing    bool
}

// mark is what a record was written for. A record is written again only if its content differs, so
// that a value or a text that changes at each evaluation does not cause a write.
type mark struct {
	content    any // comparable
	evaluation int64
}

// open locks and reads the file at the first call that succeeds, and returns its state. It returns
// nil if there is none.
func (s *stateStore) open(logger *slog.Logger) (state *savedState) {
	if s.path == "" || s.isOpen() {
		return nil
	}
	var foreign error
	damaged := 0
	s.locked(logger, func() (err error) {
		state, damaged, foreign, err = s.read()
		return err
	})
	if foreign != nil {
		logger.Error("alert: state file is damaged or foreign, starting without it", "file", s.path,
			"renamed", s.path+".bad", "error", foreign.Error())
	}
	if damaged > 0 {
		logger.Warn("alert: state file has damaged records, using the others", "file", s.path, "records", damaged)
	}
	return state
}

func (s *stateStore) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal != nil
}

// locked runs fn with the lock held. It logs the first of several errors, and the success after
// them, once the lock is free: a handler of the logger may use the monitor.
func (s *stateStore) locked(logger *slog.Logger, fn func() error) {
	s.mu.Lock()
	was, err := s.failing, fn()
	s.failing = err != nil
	s.mu.Unlock()
	switch {
	case err != nil && !was:
		logger.Error("alert: state file cannot be used, will retry", "file", s.path, "error", err.Error())
	case err == nil && was:
		logger.Info("alert: state file is in use again", "file", s.path)
	}
}

// read reads the file. foreign is the reason why it was renamed, if it was, and damaged how many
// records cannot be used.
func (s *stateStore) read() (state *savedState, damaged int, foreign, err error) {
	j, damaged, err := journal.Open(s.path, stateFormat)
	if f, isForeign := errors.AsType[*journal.ForeignError](err); isForeign {
		if err := os.Rename(s.path, s.path+".bad"); err != nil {
			return nil, 0, nil, err
		}
		foreign = f
		j, damaged, err = journal.Open(s.path, stateFormat)
	}
	if err != nil {
		return nil, 0, foreign, err
	}
	state, invalid := decodeState(j)
	if damaged += invalid; damaged > 0 {
		// A copy, if the file system has links. The next commit replaces the file, not the copy.
		_ = os.Remove(s.path + ".bad")
		_ = os.Link(s.path, s.path+".bad")
	}
	s.journal, s.marks = j, map[string]mark{}
	for key := range j.All {
		s.marks[key] = mark{}
	}
	return state, damaged, foreign, nil
}

// errNotRead says that the file was not read yet. It is logged as the reason for that.
var errNotRead = errors.New("not read yet")

// saveAlerts writes what an evaluation has changed, and removes what no longer exists.
func (s *stateStore) saveAlerts(c *setup, alerts []Alert, retired []*tracker, at time.Time) {
	if s.path == "" {
		return
	}
	s.locked(c.config.Logger, func() error {
		if s.journal == nil {
			return errNotRead
		}
		s.evaluation++
		s.deliverers = c.deliverers
		err := s.putAlerts(c, silencedIDs(alerts), retired, at)
		for _, d := range c.deliverers {
			err = errors.Join(err, s.put(keyNotifier+d.name, true, true))
			for _, e := range d.savedEntries() {
				err = errors.Join(err, s.putEntry(d, e))
			}
		}
		for key, m := range s.marks {
			if m.evaluation != s.evaluation {
				s.remove(key)
			}
		}
		return errors.Join(err, s.journal.Commit())
	})
}

func silencedIDs(alerts []Alert) map[string]bool {
	silenced := map[string]bool{}
	for _, a := range alerts {
		if a.SilencedBy != "" {
			silenced[a.ID] = true
		}
	}
	return silenced
}

// putAlerts sets the records of the trackers and of their rules.
func (s *stateStore) putAlerts(c *setup, silenced map[string]bool, retired []*tracker, at time.Time) (err error) {
	waits, rules := noWait, map[string]*Rule{}
	put := func(t *tracker) {
		rules[t.rule.Name] = t.rule
		waits = min(waits, t.waits())
		err = errors.Join(err, s.putTracker(t, silenced[t.id]))
	}
	for _, t := range retired {
		put(t)
	}
	for _, e := range c.evaluators {
		for _, t := range e.trackers {
			if t.exists() {
				put(t)
			}
		}
	}
	for _, r := range rules {
		err = errors.Join(err, s.putRule(r))
	}
	if waits != noWait {
		err = errors.Join(err, s.putTime(at, min(waits/20, time.Minute)))
	}
	return err
}

// putTime sets the time of the evaluation, if the one in the file is older than most. A restart
// lengthens a wait by the age of the time in the file.
func (s *stateStore) putTime(at time.Time, most time.Duration) error {
	saved, _ := s.marks[keyAt].content.(time.Time)
	if at.Sub(saved).Abs() >= most {
		saved = at.Round(0)
	}
	return s.put(keyAt, saved, saved)
}

func (s *stateStore) putRule(r *Rule) error {
	text, err := json.Marshal(savedRule{r.Annotations, r.When.threshold, r.When.below})
	if err != nil {
		return err
	}
	return s.put(keyRule+r.Name, string(text), json.RawMessage(text))
}

// alertMark is the content that a savedAlert is written again for.
type alertMark struct {
	phase                                    phase
	bad, silenced                            bool
	activeAt, firedAt, clearedAt, resolvedAt int64
}

func (s *stateStore) putTracker(t *tracker, silenced bool) error {
	content := alertMark{
		t.phase, t.bad, silenced, t.activeAt.UnixNano(), t.firedAt.UnixNano(), t.clearedAt.UnixNano(), t.resolvedAt.UnixNano(),
	}
	return s.put(keyAlert+t.id, content, savedAlert{
		Labels: t.labels, Phase: t.phase, Bad: t.bad, Silenced: silenced,
		ActiveAt: t.activeAt, FiredAt: t.firedAt, ClearedAt: t.clearedAt, ResolvedAt: t.resolvedAt,
		ValueName: t.valueName, Value: t.latest.Value, Calls: t.latest.Calls, BadCalls: t.latest.Bad,
	})
}

// entryMark is the content that a savedEntry is written again for.
type entryMark struct {
	state                           State
	toldFiring, notified, held, due bool
	startsAt, endsAt                int64
}

func (s *stateStore) putEntry(d *deliverer, e savedEntry) error {
	content := entryMark{state: e.State, toldFiring: e.ToldFiring, notified: e.Notified, held: e.Held}
	if e.Due != nil {
		content.due, content.startsAt, content.endsAt = true, e.Due.StartsAt.UnixNano(), e.Due.EndsAt.UnixNano()
	}
	return s.put(entryKey(e.ID, d.name), content, e)
}

// put sets a record if its content has changed.
func (s *stateStore) put(key string, content, value any) (err error) {
	if s.marks[key].content != content {
		err = s.journal.Set(key, value)
	}
	if err != nil {
		content = nil
	}
	s.marks[key] = mark{content, s.evaluation}
	return err
}

func (s *stateStore) remove(key string) {
	delete(s.marks, key)
	s.journal.Delete(key)
}

// saveDeliveries writes the entries of the alerts of a delivery.
func (s *stateStore) saveDeliveries(d *deliverer, batch []Alert) {
	if s.path == "" {
		return
	}
	s.locked(d.receiver.Load().logger, func() (err error) {
		if s.journal == nil {
			return errNotRead
		}
		if !slices.Contains(s.deliverers, d) {
			return nil
		}
		for _, a := range batch {
			if e, ok := d.savedEntry(a.ID); ok {
				err = errors.Join(err, s.putEntry(d, e))
			} else {
				s.remove(entryKey(a.ID, d.name))
			}
		}
		return errors.Join(err, s.journal.Commit())
	})
}
