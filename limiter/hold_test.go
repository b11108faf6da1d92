package limiter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// Scenario 71: a failed login costs five, and a service that says when to come back is left alone until then.
func TestPenalties(t *testing.T) {
	b := bucket(limiter.PerSecond(1), 6)
	take(t, b, step{0, 1, "ok 5/6 reset 1s"})
	reserve(t, b, 0, 5, 0) // the login has failed
	take(t, b, step{0, 1, "refused 0/6 retry 1s reset 6s"})
	reserve(t, b, 0, 5, 5*sec) // and the next one, which goes below nothing
	take(t, b, step{0, 1, "refused 0/6 retry 6s reset 11s"})

	b = bucket(limiter.PerSecond(10), 6)
	take(t, b, step{0, 1, "ok"})
	b.HoldAt(start, 30*sec)
	take(t, b, step{0, 1, "refused 0/6 retry 30s reset 30.5s"}, step{30*sec - 1, 1, "refused"},
		step{30 * sec, 2, "refused"}, step{30 * sec, 1, "ok 0/6 reset 600ms"})
	b.HoldAt(start.Add(30*sec), -sec)
	b.HoldAt(start.Add(30*sec), 50*ms) // is less than what is owed already
	take(t, b, step{30 * sec, 1, "refused 0/6 retry 100ms reset 600ms"})
	b.HoldAt(start.Add(30*sec), 1<<63-1)
	take(t, b, step{100 * year, 1, "refused"})

	free := bucket(limiter.Unlimited(), 1)
	free.HoldAt(start, time.Hour)
	take(t, free, step{0, 1, "ok"})
}

// stubborn is a limiter that cannot be held, and has no period.
type stubborn struct{ limiter.Limiter }

func TestHoldReachesWhatIsBehind(t *testing.T) {
	fresh := func() *limiter.TokenBucket {
		return limiter.NewTokenBucket(limiter.Config{Rate: limiter.PerHour(1), Burst: 5})
	}
	for name, l := range map[string]limiter.Limiter{
		"named": limiter.NewNamed("x", fresh(), limiter.NamedConfig{}),
		"joint": limiter.All(fixedWindow(100, time.Hour), fresh()),
		"both":  limiter.NewNamed("x", limiter.All(fresh(), fresh()), limiter.NamedConfig{}),
	} {
		l.(limiter.Holder).Hold(24 * time.Hour)
		require.Greater(t, l.Take(1).RetryAfter, 23*time.Hour, name)
	}
	rest := limiter.NewNamed("x", stubborn{fresh()}, limiter.NamedConfig{})
	rest.Hold(24 * time.Hour)
	require.True(t, rest.Take(1).OK)
}

func TestNamedHasThePeriodOfItsLimiter(t *testing.T) {
	require.Equal(t, time.Minute, limiter.NewNamed("x", fixedWindow(10, time.Minute), limiter.NamedConfig{}).Period())
	require.Zero(t, limiter.NewNamed("x", stubborn{fixedWindow(10, time.Minute)}, limiter.NamedConfig{}).Period())
}
