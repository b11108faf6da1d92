package dashboard_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// changeCases list events of a breaker before and after a sample, and what the next sample must
// show.
var changeCases = map[string]struct {
	before, after func(b *breaker.Breaker)
	state, want   string
	since         time.Duration // before the sample
	atMost        bool
}{
	"nothing": {
		doNothing, doNothing, "closed", "", 2 * time.Minute, false,
	},
	"opened": {
		doNothing, func(b *breaker.Breaker) { openBreaker(b); time.Sleep(2 * time.Second) },
		"open", "closed→open", 2 * time.Second, false,
	},
	"opened, and half-open by the clock": {
		doNothing, func(b *breaker.Breaker) { openBreaker(b); time.Sleep(8 * time.Second) },
		"half_open", "closed→half_open by open×1", 3 * time.Second, false,
	},
	"opened and closed": {
		doNothing, func(b *breaker.Breaker) {
			openBreaker(b)
			time.Sleep(8 * time.Second)
			runCalls(b, 3, 0)
			time.Sleep(time.Second)
		},
		"closed", "closed→closed by open×1 half_open×1", 52 * time.Second, true,
	},
	"closed again": {
		func(b *breaker.Breaker) { openBreaker(b); time.Sleep(8 * time.Second) },
		func(b *breaker.Breaker) { runCalls(b, 3, 0); time.Sleep(time.Second) },
		"closed", "half_open→closed", time.Second, false,
	},
	"opened twice": {
		func(b *breaker.Breaker) { openBreaker(b); time.Sleep(8 * time.Second) },
		func(b *breaker.Breaker) { runCalls(b, 3, 0); openBreaker(b); time.Sleep(time.Second) },
		"open", "half_open→open by closed×1", time.Second, false,
	},
	"forced": {
		doNothing, func(b *breaker.Breaker) { b.Force(breaker.ForcedOpen, ""); time.Sleep(4 * time.Second) },
		"forced_open", "closed→forced_open", 4 * time.Second, false,
	},
}

// TestTimesOfChanges samples a breaker with a cooldown of five seconds once a minute. The totals
// show what happened in between, and usually when.
func TestTimesOfChanges(t *testing.T) {
	for name, c := range changeCases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				b := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})
				page := newDefaultPage(b)
				c.before(b)
				time.Sleep(time.Until(begin.Add(time.Minute)))
				getSnapshot(t, page)
				rest := time.Now()
				c.after(b)
				time.Sleep(max(0, time.Until(rest.Add(time.Second))))
				if c.want == "" || c.atMost {
					time.Sleep(time.Until(rest.Add(time.Minute)))
				}

				s := getSnapshot(t, page)
				r := s.row(t, "bank")
				require.Equal(t, c.state, r.State)
				want := time.Now().Add(-c.since).UnixMilli()
				require.Equal(t, want, *r.Since, "off by %v", time.Duration(*r.Since-want)*time.Millisecond)
				require.Equal(t, c.atMost, r.AtMost)
				require.Equal(t, c.want, onlyChangeText(s.Changes))
			})
		})
	}
}

func doNothing(*breaker.Breaker) {}

// onlyChangeText returns the only change as text.
func onlyChangeText(changes []change) (s string) {
	for _, c := range changes {
		s += c.From + "→" + c.To
		for n, v := range c.By {
			if n == 0 {
				s += " by"
			}
			s += fmt.Sprintf(" %s×%v", v.State, v.Times)
		}
	}
	return s
}

// TestTimeInStateAtFirstSight takes the first sample of breakers that have changed state before.
func TestTimeInStateAtFirstSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off := breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off}
		fresh, once, twice := breaker.New("fresh", off), breaker.New("once", off), breaker.New("twice", off)
		time.Sleep(20 * time.Second)
		openBreaker(once)
		openBreaker(twice)
		time.Sleep(7 * time.Second)
		runCalls(twice, 3, 0) // closed for the second time
		time.Sleep(3 * time.Second)
		s := getSnapshot(t, newDefaultPage(fresh, once, twice))
		now := time.Now()
		require.Equal(t, now.Add(-30*time.Second).UnixMilli(), *s.row(t, "fresh").Since)
		require.False(t, s.row(t, "fresh").AtMost)

		require.Equal(t, "half_open", s.row(t, "once").State)
		require.Equal(t, now.Add(-5*time.Second).UnixMilli(), *s.row(t, "once").Since, "all time in the state is since its first start")
		require.False(t, s.row(t, "once").AtMost)

		require.Equal(t, now.Add(-23*time.Second).UnixMilli(), *s.row(t, "twice").Since, "two stays of 23 s together")
		require.True(t, s.row(t, "twice").AtMost)
		require.Empty(t, s.Changes, "changes before the first sample are not reported")
	})
}

func TestHundredChangesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})
		page := newDefaultPage(b)
		getSnapshot(t, page)
		for n := range 130 {
			b.Force([]breaker.State{breaker.ForcedOpen, breaker.Shadow}[n%2], "")
			time.Sleep(time.Second)
			getSnapshot(t, page)
		}
		changes := getSnapshot(t, page).Changes
		require.Len(t, changes, 100)
		require.Equal(t, "shadow", changes[99].To, "newest last")
		require.Less(t, changes[98].At, changes[99].At)
	})
}

func TestReplacedSourceIsNotAChange(t *testing.T) {
	for _, calls := range []struct{ good, bad int }{{5, 0}, {0, 20}} {
		synctest.Test(t, func(t *testing.T) {
			old := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})
			runCalls(old, calls.good, calls.bad)
			page := newDefaultPage(old)
			getSnapshot(t, page)
			page.Remove(old)
			require.NoError(t, page.Add(breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})))
			time.Sleep(time.Second)
			s := getSnapshot(t, page)
			require.Equal(t, "closed", s.row(t, "bank").State)
			require.Empty(t, s.Changes)
			require.Nil(t, s.row(t, "bank").Rate, "the totals are those of another source")
		})
	}
}

// If a source takes the name of another, its totals include its own earlier calls and changes. The
// page must show them neither as a current rate nor as current changes.
func TestReplacedSourceStartsWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})
		page := newDefaultPage(old)
		getSnapshot(t, page)
		other := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})
		for range 3 {
			other.Force(breaker.ForcedOpen, "")
			other.Release()
		}
		runCalls(other, 1000, 0)
		time.Sleep(time.Second)
		page.Remove(old)
		require.NoError(t, page.Add(other))
		s := getSnapshot(t, page)
		require.Nil(t, s.row(t, "bank").Rate, "the calls were made before")
		require.Nil(t, s.row(t, "bank").CallRates[0])
		require.Empty(t, s.Changes, "the changes were before")

		time.Sleep(time.Second)
		runCalls(other, 5, 0)
		other.Force(breaker.ForcedOpen, "")
		s = getSnapshot(t, page)
		require.Equal(t, 5.0, *s.row(t, "bank").Rate)
		require.Len(t, s.Changes, 1)
	})
}

// The same holds for a limiter that is added to the row of a breaker.
func TestLimiterAddedToABreakersRowStartsWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off})
		page := newDefaultPage(bank)
		getSnapshot(t, page)
		bank.Force(breaker.ForcedOpen, "")
		limit := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 1, Window: time.Hour, Name: "bank"})
		for range 1000 {
			limit.Take(1)
		}
		time.Sleep(time.Second)
		require.NoError(t, page.Add(limit))
		s := getSnapshot(t, page)
		require.Nil(t, s.row(t, "bank").Refused)
		require.Len(t, s.Changes, 1, "only the breaker's change is current")
	})
}
