package fleet_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// linkToNothing returns a link to a port at which no server listens.
func linkToNothing(t *testing.T) *fleet.Link {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	link, err := fleet.Connect(t.Context(), "redis", client, fleet.LinkConfig{})
	require.NoError(t, err)
	return link
}

func TestBusiestCountsRefusedKeys(t *testing.T) {
	link := linkToNothing(t)
	open := newLimiter(link, "open", hourlyBucket, fleet.Config{OnOutage: fleet.FailOpen})
	closed := newLimiter(link, "closed", hourlyBucket, fleet.Config{OnOutage: fleet.FailClosed, ShowKeys: true})
	for range 3 {
		for _, l := range []*fleet.Limiter{open, closed} {
			_, err := l.Take(t.Context(), "bob", 1)
			require.NoError(t, err)
		}
	}
	_, err := closed.Take(t.Context(), "nothing", 0)
	require.NoError(t, err)
	require.Error(t, waitWithin(t, closed, 10*ms, strings.Repeat("e", 100), 1))
	require.Empty(t, open.Busiest(9), "allowed requests do not count")
	require.Equal(t, []limiter.BusyKey{
		{Limiter: "closed", Key: "bob", AtLeast: 3, AtMost: 3},
		{Limiter: "closed", Key: strings.Repeat("e", 64) + "…", AtLeast: 1, AtMost: 1},
	}, closed.Busiest(9))

	_, err = open.Take(t.Context(), "bob", 2) // the limit is 1
	require.NoError(t, err)
	hashed := open.Busiest(9)
	require.Len(t, hashed, 1)
	require.Regexp(t, "^#[0-9a-f]{12}$", hashed[0].Key)
}

// Package admin acts on a link and a limiter by the methods that they have.
func TestAdminActsOnLinksAndLimiters(t *testing.T) {
	link := linkToNothing(t)
	users := newLimiter(link, "users", hourlyBucket, fleet.Config{OnOutage: fleet.FailClosed})
	_, err := users.Take(t.Context(), "bob", 1)
	require.NoError(t, err)
	ops, err := admin.New(admin.Config{Authorize: func(*http.Request, admin.Action) (string, error) { return "alice", nil }}, link, users)
	require.NoError(t, err)
	send := func(method, target, body string) (status int, answer string) {
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ops.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	status, answer := send("POST", "/force?name=redis&all=true", `{"state":"open"}`)
	require.Equal(t, 200, status, answer)
	for _, b := range link.Breakers() {
		require.Equal(t, breaker.ForcedOpen, b.State())
	}
	status, answer = send("POST", "/reset?name=users&key=bob", "")
	require.Equal(t, 502, status, "Redis does not answer")
	require.Contains(t, answer, "the reset failed")
	status, answer = send("POST", "/hold?name=users&all=true", `{"for":"1m"}`)
	require.Equal(t, 409, status)
	require.Contains(t, answer, "has: none, and for one key of it reset")
	_, answer = send("GET", "/object?name=users", "")
	require.Regexp(t, `"key": "#[0-9a-f]{12}"`, answer)
}
