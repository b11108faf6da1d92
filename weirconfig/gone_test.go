package weirconfig_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

func TestARemovedObjectRefusesCallsUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = `
gates: {pay: {rate: 1/h, burst: 2, max_wait: 2h}, shadow: {breaker: {force: shadow}}}
groups: {tenants: {}}
limits: {api: {policies: [{name: all, limit: 1, window: 1h, by: nothing}]}}
`
		set := newSet(t, text, weirconfig.Config{})
		pay, tenants, shadow := set.Gate("pay"), set.Group("tenants"), set.Gate("shadow")
		a := tenants.Get("a")
		require.NoError(t, a.Run(t.Context(), succeed))
		tenants.Get("forced").Breaker().Force(breaker.ForcedClosed, "")
		permit, err := pay.Allow(t.Context())
		require.NoError(t, err)
		require.NoError(t, pay.Run(t.Context(), succeed))
		waiter := make(chan error, 1)
		go func() { waiter <- pay.Run(t.Context(), succeed) }()
		synctest.Wait()
		require.Equal(t, http.StatusNotFound, limitStatus(set, "api"))

		require.NoError(t, update(t, set, `gates: {unrelated: {}}`))
		require.ErrorIs(t, <-waiter, breaker.ErrOpen)
		require.EqualValues(t, 1, pay.Totals().Successes)
		permit.Done(t.Context(), nil)
		for _, gate := range []*weir.Gate{pay, shadow, a, tenants.Get("new")} {
			require.ErrorIs(t, gate.Run(t.Context(), succeed), breaker.ErrOpen)
		}
		require.NoError(t, tenants.Get("forced").Run(t.Context(), succeed), "what is forced by hand stays so")
		pay.Breaker().Release()
		require.EqualError(t, pay.Run(t.Context(), succeed),
			`breaker "pay" is forced open: weirconfig: gate "pay" was removed from the configuration`)
		require.EqualError(t, a.Run(t.Context(), succeed),
			`breaker "tenants" for "a" is forced open: weirconfig: group "tenants" was removed from the configuration`)
		require.Equal(t, http.StatusTooManyRequests, limitStatus(set, "api"))
		require.Same(t, pay, set.Gate("pay"))
		require.NoError(t, update(t, set, `gates: {unrelated: {}}`), "twice")

		require.NoError(t, update(t, set, text))
		for _, gate := range []*weir.Gate{shadow, a, tenants.Get("forced"), tenants.Get("new"), tenants.Get("newer")} {
			require.NoError(t, gate.Run(t.Context(), succeed))
		}
		require.Equal(t, breaker.Shadow, shadow.Breaker().State())
		require.Equal(t, breaker.ForcedClosed, tenants.Get("forced").Breaker().State())
		require.Zero(t, pay.Limiter().Take(0).Remaining)
		require.Equal(t, http.StatusTooManyRequests, limitStatus(set, "api"), "its quota is still used up")
		time.Sleep(70 * time.Minute)
		require.NoError(t, pay.Run(t.Context(), succeed))
		require.Equal(t, http.StatusNotFound, limitStatus(set, "api"))
	})
}

func TestAFullGroupThatIsGoneRefusesEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = `groups: {tenants: {max_keys: 2, gate: {rate: 1/h, burst: 1, max_wait: 2h}}}`
		set := newSet(t, text, weirconfig.Config{})
		tenants := set.Group("tenants")
		permits := make([]weir.Permit, 4) // so no key is evicted
		for n, key := range []string{"a", "b", "c", "d"} {
			var err error
			permits[n], err = tenants.Get(key).Allow(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, tenants.Get("without room").Run(t.Context(), succeed))
		waiter := make(chan error, 1)
		go func() { waiter <- tenants.Get("without room").Run(t.Context(), succeed) }()
		synctest.Wait()
		require.NoError(t, update(t, set, `gates: {unrelated: {}}`))
		require.ErrorContains(t, <-waiter, `group "tenants" was removed from the configuration`)
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			require.ErrorIs(t, tenants.Get(key).Run(t.Context(), succeed), weir.ErrRefused, key)
		}
		require.NoError(t, update(t, set, text))
		time.Sleep(3 * time.Hour)
		for _, key := range []string{"a", "e"} {
			require.NoError(t, tenants.Get(key).Run(t.Context(), succeed), key)
		}
		for n := range permits {
			permits[n].Record(t.Context(), nil, breaker.Success)
		}
	})
}

func TestALimitThatIsGoneTellsItsClients(t *testing.T) {
	const text = `limits: {api: {policies: [{name: removed from the configuration, limit: 9, window: 1h, by: nothing}]}}`
	set := newSet(t, text, weirconfig.Config{})
	require.NoError(t, update(t, set, `gates: {unrelated: {}}`))
	w := httptest.NewRecorder()
	set.Limit("api").Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Contains(t, w.Body.String(), "removed from the configuration 2")
	require.NoError(t, update(t, set, text))
	require.Equal(t, http.StatusNotFound, limitStatus(set, "api"))
}
