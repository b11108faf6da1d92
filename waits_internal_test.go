package weir

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// The config changes between the moment at which a call finds no slot and the moment at which it
// begins to wait.
func TestACallThatBeginsToWaitAfterAChangeUsesTheNewConfig(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		after Config
		took  time.Duration
		made  bool
	}{
		"no bound":          {Config{}, 0, true},
		"a shorter MaxWait": {Config{MaxConcurrent: 1, MaxWait: 10 * ms}, 10 * ms, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New("g", Config{MaxConcurrent: 1, MaxWait: time.Hour})
				_, err := g.Allow(t.Context())
				require.NoError(t, err)
				old := g.setup.Load()
				require.NoError(t, g.Reconfigure(c.after))
				var permit breaker.Permit
				start := time.Now()
				err = old.waitAndAcquire(t.Context(), &wait{lacksSlot: true}, target{permit: &permit})
				require.Equal(t, c.took, time.Since(start))
				require.Equal(t, c.made, err == nil)
				require.Empty(t, g.waits.all)
				require.Zero(t, g.Admissions().Waiting)
			})
		})
	}
}
