package fleet

import (
	"context"
	"fmt"
	"time"
)

// SetRate sets the limit and the span of a key, for all nodes and whatever their configs say, until
// the key has not been used for KeepRate. It is for a limiter whose only limit is a [SlidingLog],
// and an error for any other.
//
// What has been taken still counts. If the span becomes longer and permits have left the window
// already that lie in the longer one, nothing is admitted until they have left that too; but what a
// key that was idle for the old span had taken before is not known any more.
func (l *Limiter) SetRate(ctx context.Context, key string, limit int, span time.Duration) error {
	log, ok := l.onlyLog()
	if !ok {
		return fmt.Errorf("fleet: limiter %q cannot set a rate: its only limit must be a SlidingLog", l.name)
	}
	if err := validateWindow(limit, span); err != nil {
		return err
	}
	k := targetOf(key)
	keys := log.keys(l.parts[0].store.(*scripted).base(k.tag))
	keep := max(log.KeepRate, span).Milliseconds()
	_, err := l.link.eval(ctx, setRateScript, []string{keys[1], keys[0]}, []any{limit, span.Microseconds(), keep})
	l.book.fault(err)
	l.changed(k)
	return err
}

// onlyLog is the limiter's limit, if that is one sliding log.
func (l *Limiter) onlyLog() (logRule, bool) {
	if len(l.parts) != 1 || len(l.parts[0].terms) != 1 || l.parts[0].terms[0].by != nil {
		return logRule{}, false
	}
	log, ok := l.parts[0].terms[0].rule.(logRule)
	return log, ok
}
