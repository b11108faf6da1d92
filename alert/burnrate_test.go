package alert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// burnTraffic is a service under a BurnRate rule at 99.9 %, evaluated every 5 s.
type burnTraffic struct {
	totals
	monitor *alert.Monitor
	start   time.Time
	now     time.Duration
}

func newBurnTraffic() *burnTraffic {
	tr := &burnTraffic{start: time.Now()}
	tr.monitor = alert.NewMonitor(alert.Config{}, alert.BurnRateRules("shop", tr, 0.999)...)
	tr.monitor.Evaluate(tr.start)
	return tr
}

// evaluateFor makes calls before each evaluation, some of them bad. It returns the time since the
// start of the test at which the first alert fired, or 0 if none fired.
func (tr *burnTraffic) evaluateFor(d time.Duration, calls, bad int64) (fired time.Duration) {
	for end := tr.now + d; tr.now < end; {
		tr.now += 5 * s
		tr.Successes += calls - bad
		tr.Failures += bad
		tr.monitor.Evaluate(tr.start.Add(tr.now))
		if fired == 0 && len(tr.firing()) > 0 {
			fired = tr.now
		}
	}
	return fired
}

func (tr *burnTraffic) firing() (names []string) {
	for _, a := range tr.monitor.Alerts() {
		if a.State == alert.Firing {
			names = append(names, a.Rule)
		}
	}
	return names
}

func TestBurnRateOfAFailingDeployIsNoticedSoon(t *testing.T) {
	tr := newBurnTraffic()
	fired := tr.evaluateFor(time.Minute, 100, 100)
	require.NotZero(t, fired, "within a minute")
	require.Greater(t, fired, 45*s, "not at the first errors")
	require.Equal(t, []string{"shop burn 14.4x"}, tr.firing())
	require.Equal(t, "page", tr.monitor.Alerts()[0].Labels["severity"])
}

func TestBurnRateOfOneEarlyErrorDoesNotFire(t *testing.T) {
	tr := newBurnTraffic()
	require.Zero(t, tr.evaluateFor(5*s, 10, 1))
	require.Zero(t, tr.evaluateFor(6*time.Hour, 10, 0))
}

func TestBurnRateNeedsBothSpans(t *testing.T) {
	tr := newBurnTraffic()
	require.Zero(t, tr.evaluateFor(6*time.Hour, 100, 0))
	require.Zero(t, tr.evaluateFor(30*s, 100, 100), "only the short span is full of errors")
	require.NotZero(t, tr.evaluateFor(time.Minute, 100, 100))
	tr.evaluateFor(6*time.Minute, 100, 0)
	require.Empty(t, tr.firing(), "only the long span still has errors")
}

func TestSlowBurnFiresTheSlowRule(t *testing.T) {
	tr := newBurnTraffic()
	require.Zero(t, tr.evaluateFor(7*time.Hour, 1000, 1), "the objective allows a burn rate of 1")
	require.NotZero(t, tr.evaluateFor(6*time.Hour, 1000, 8))
	require.Equal(t, []string{"shop burn 6x"}, tr.firing())
}

func TestBurnRateCountsRefusedCalls(t *testing.T) {
	tr := newBurnTraffic()
	for range 12 {
		tr.Refused += 100
		tr.evaluateFor(5*s, 0, 0)
	}
	require.Equal(t, []string{"shop burn 14.4x"}, tr.firing())
}

func TestBurnRateWithoutCallsHasNoData(t *testing.T) {
	tr := newBurnTraffic()
	tr.evaluateFor(time.Hour, 0, 0)
	require.Empty(t, tr.monitor.Alerts())
}

func TestBurnRateThatCannotOccurIsInvalid(t *testing.T) {
	err := alert.Config{}.Validate(alert.BurnRateRules("lax", &totals{}, 0.9)...)
	require.EqualError(t, err, `alert: rule "lax burn 14.4x": When is above 14.4, but the burn rate over 1h and 5m lies between 0 and 10: the rule could never fire`)
	require.NoError(t, alert.Config{}.Validate(alert.BurnRateRules("strict", &totals{}, 0.999)...))
}
