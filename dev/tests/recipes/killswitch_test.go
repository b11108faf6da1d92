package recipes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirtest"
)

func TestAGateThatIsSwitchedOffRefusesAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("recommendations", weir.Config{})
		var service weirtest.Service
		recipes.SetEnabled(gate, false)
		time.Sleep(24 * time.Hour)
		err := gate.Run(t.Context(), service.Call)
		weirtest.WantRefused(t, err, breaker.ErrOpen)
		require.ErrorContains(t, err, "recommendations are switched off")
		got, err := weir.DoOr(t.Context(), gate, func(context.Context) (string, error) { return "theirs", nil },
			func(context.Context, error) (string, error) { return "bestsellers", nil })
		require.NoError(t, err)
		require.Equal(t, "bestsellers", got)
		require.Zero(t, service.Calls())

		recipes.SetEnabled(gate, true)
		for range 100 {
			require.NoError(t, gate.Run(t.Context(), service.Call), "all calls are allowed at once")
		}
	})
}

func TestAGateIsSwitchedOffForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, opened := weir.New("recommendations", weir.Config{}), weir.New("opened", weir.Config{})
		var service weirtest.Service
		recipes.SwitchOffFor(gate, 10*time.Minute)
		opened.Breaker().OpenFor(10 * time.Minute)
		time.Sleep(10*time.Minute - time.Second)
		weirtest.WantRefused(t, gate.Run(t.Context(), service.Call), breaker.ErrOpen)
		weirtest.WantRefused(t, opened.Run(t.Context(), service.Call), breaker.ErrOpen)
		time.Sleep(time.Second)
		synctest.Wait()
		for range 100 {
			require.NoError(t, gate.Run(t.Context(), service.Call))
			_ = opened.Run(t.Context(), service.Call)
		}
		require.Equal(t, breaker.Recovering, opened.Breaker().State())
		require.Positive(t, opened.Totals().Refused-1, "the breaker recovers")
	})
}

// A reload of the configuration leaves an override that was set by hand.
func TestASwitchOutlivesAReload(t *testing.T) {
	gate := weir.New("recommendations", weir.Config{})
	recipes.SetEnabled(gate, false)
	require.NoError(t, gate.Reconfigure(weir.Config{MaxConcurrent: 10}))
	require.Equal(t, breaker.ForcedOpen, gate.Breaker().State())
}

func TestOperatorsSwitchAGateOffForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, mux := weir.New("recommendations", weir.Config{}), http.NewServeMux()
		require.NoError(t, recipes.MountAdmin(mux, func(r *http.Request, _ admin.Action) (string, error) {
			if user, password, _ := r.BasicAuth(); password == "s3cret" {
				return user, nil
			}
			return "", errors.New("no")
		}, gate))
		post := func(password string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admin/weir/force?name=recommendations",
				strings.NewReader(`{"state": "open", "for": "10m", "reason": "ticket 17"}`))
			r.Header.Set("Content-Type", "application/json")
			r.SetBasicAuth("alice", password)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			return w.Code
		}
		require.Equal(t, 401, post("wrong"))
		require.Equal(t, breaker.Closed, gate.Breaker().State())
		require.Equal(t, 200, post("s3cret"))
		require.Equal(t, breaker.ForcedOpen, gate.Breaker().State())
		time.Sleep(10*time.Minute + time.Second)
		require.Equal(t, breaker.Closed, gate.Breaker().State())
	})
}
