package alert

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// testRule is the rule name of test messages.
const testRule = "weir test"

// Test sends a test message to the notifier with the name: an alert of a rule "weir test" with the
// severity "info", which fires and then resolves, so that receivers close what they opened. It
// makes one attempt for each of the two states, with the timeout of the monitor, and returns the
// error of the first attempt that fails. Silences and statistics are not affected. Test works
// whether or not Run is running.
//
// If group_wait makes an Alertmanager wait before it notifies, it drops the message, because the
// alert has resolved by then. A nil error means that the Alertmanager accepted the message.
func (m *Monitor) Test(ctx context.Context, notifier string) error {
	s := m.setup.Load()
	at := slices.IndexFunc(s.deliverers, func(d *deliverer) bool { return d.name == notifier })
	if at < 0 {
		return fmt.Errorf("alert: the monitor has no notifier %.100q", notifier)
	}
	d := s.deliverers[at]
	if err := d.attempt.lock(ctx); err != nil {
		return err
	}
	defer d.attempt.unlock()
	for _, a := range s.config.testAlerts(time.Now()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if failed := d.receiver.Load().send(ctx, []Alert{a}); failed != nil {
			return fmt.Errorf("alert: test of notifier %q: %s message: %w", notifier, a.State, failed)
		}
	}
	return nil
}

// testAlerts returns a firing alert and its resolution.
func (c Config) testAlerts(now time.Time) []Alert {
	labels := map[string]string{labelRule: testRule, labelSeverity: "info"}
	if c.Instance != noInstance {
		labels[labelInstance] = c.Instance
	}
	fires := Alert{
		ID: fingerprint(labels), Rule: testRule, Labels: labels, State: Firing,
		Summary: "This is a test message. Nothing is wrong.", Value: 1, ActiveAt: now, StartsAt: now,
	}
	resolves := fires
	resolves.State, resolves.EndsAt = Resolved, now
	resolves.Summary = "This is the end of a test message. Nothing was wrong."
	return cloned([]Alert{fires, resolves})
}
