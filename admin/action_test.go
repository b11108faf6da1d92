package admin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

func TestForceAndReleaseOfAGate(t *testing.T) {
	var changes []breaker.Change
	g := weir.New("payments", weir.Config{Breaker: breaker.Config{OnChange: func(c breaker.Change) { changes = append(changes, c) }}})
	k := newHandlerTest(t, g)
	a := k.sendAction("force", "name=payments", `{"state":"open","reason":"ticket 17"}`)
	require.Equal(t, "gate", a.Kind)
	require.Equal(t, "forced_open", a.State)
	require.Equal(t, breaker.ForcedOpen, g.Breaker().State())
	require.Equal(t, "forced by alice: ticket 17", changes[0].Reason)
	_, err := g.Allow(t.Context())
	require.ErrorIs(t, err, weir.ErrRefused)
	require.NotContains(t, err.Error(), "alice", "callers are not told the user")
	require.NotContains(t, err.Error(), "ticket")

	for word, want := range map[string]breaker.State{"closed": breaker.ForcedClosed, "disabled": breaker.Disabled, "shadow": breaker.Shadow} {
		k.sendAction("force", "name=payments", `{"state":"`+word+`"}`)
		require.Equal(t, want, g.Breaker().State())
	}
	require.Equal(t, "closed", k.sendAction("release", "name=payments", `{}`).State)
	require.Equal(t, "released by alice", changes[len(changes)-1].Reason)
	require.Equal(t, "forced_open", k.sendAction("drain", "name=payments", "").State)
}

func TestResetOfABreaker(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	k := newHandlerTest(t, b)
	b.OpenFor(1 << 40)
	require.Equal(t, "closed", k.sendAction("reset", "name=b", `{}`).State)
}

func TestHoldRefusesCallsOfAGate(t *testing.T) {
	g := weir.New("g", weir.Config{})
	k := newHandlerTest(t, g)
	a := k.sendAction("hold", "name=g", `{"for":"1h"}`)
	require.Equal(t, "hold", a.Timed[0].What)
	_, err := g.Allow(t.Context())
	var limited *limiter.LimitedError
	require.ErrorAs(t, err, &limited)
	require.Equal(t, limiter.Held, limited.Reason)
	k.requireRefused(400, `no "for"`, "/hold?name=g", `{}`)
}

func TestLimitsOfAGate(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), MaxConcurrent: 3})
	k := newHandlerTest(t, g)
	a := k.sendAction("limits", "name=g", `{"rate":"7/s","burst":2,"max_concurrent":1}`)
	require.Equal(t, "7/s", a.Rate)
	require.Equal(t, 2, a.Burst)
	require.Equal(t, 1, a.MaxConcurrent)
	permit, err := g.Allow(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, *k.send("GET", "/object?name=g", "").InFlight)
	_, err = g.Allow(t.Context())
	require.ErrorIs(t, err, inflight.ErrFull)
	permit.Record(t.Context(), nil, breaker.Success)
	k.requireRefused(400, "burst is 0", "/limits?name=g", `{"burst":0}`)
	require.Equal(t, "7/s", k.send("GET", "/object?name=g", "").Rate)
}

func TestLimitsOfLimitersAndGroups(t *testing.T) {
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "bucket", Rate: limiter.PerSecond(1)})
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(1)})
	slots := inflight.New(inflight.Config{Name: "slots", Limit: 3})
	hosts := weir.NewGroup[int]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), MaxConcurrent: 5}})
	k := newHandlerTest(t, bucket, users, slots, hosts)

	k.sendAction("limits", "name=bucket", `{"rate":"100/s"}`)
	require.Equal(t, 100, bucket.Take(0).Limit)
	k.sendAction("limits", "name=users&all=true", `{"burst":9}`)
	require.Equal(t, 9, users.Get("x").Take(0).Limit)
	k.sendAction("limits", "name=slots", `{"max_concurrent":8}`)
	require.Equal(t, 8, slots.Limit())
	hosts.Get(7)
	a := k.sendAction("limits", "name=hosts&all=true", `{"rate":"50/s","max_concurrent":2}`)
	require.Equal(t, "50/s", a.Rate)
	require.Equal(t, 50, hosts.Get(7).Limiter().Take(0).Limit)
	require.Equal(t, 2, k.send("GET", "/object?name=hosts&key=7", "").MaxConcurrent)

	k.requireRefused(409, "use all=true", "/limits?name=hosts&key=7", `{"rate":"1/s"}`)
	k.requireRefused(409, "no rate", "/limits?name=slots", `{"rate":"1/s"}`)
	k.requireRefused(409, "no max_concurrent", "/limits?name=bucket", `{"max_concurrent":1}`)
	k.requireRefused(400, "none of", "/limits?name=bucket", `{"reason":"x"}`)
}

func TestMembersOfGroups(t *testing.T) {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{})
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerMinute(1)})
	k := newHandlerTest(t, hosts, shards, users)
	hosts.Get("a/../b?c")
	shards.Get(3)
	users.Get("bob").Take(1)

	a := k.sendAction("force", "name=hosts&key=a%2F..%2Fb%3Fc", `{"state":"open"}`)
	require.Equal(t, "gate_group", a.Kind)
	require.Equal(t, "a/../b?c", a.Key)
	require.Equal(t, breaker.ForcedOpen, hosts.Get("a/../b?c").Breaker().State())
	require.Len(t, k.send("GET", "/members?name=hosts&state=forced_open", "").Members, 1)
	require.Empty(t, k.send("GET", "/members?name=hosts&state=open", "").Members)
	k.sendAction("force", "name=shards&key=3", `{"state":"closed"}`)
	require.Equal(t, breaker.ForcedClosed, shards.Get(3).State())

	require.False(t, users.Get("bob").Take(1).OK)
	busiest := k.send("GET", "/object?name=users", "").Busiest
	require.Len(t, busiest, 1)
	require.Regexp(t, "^#[0-9a-f]{12}$", busiest[0].Key, "keys are hashed")
	k.sendAction("reset", "name=users&key=bob", "")
	require.True(t, users.Get("bob").Take(1).OK)

	k.requireRefused(404, `no key "4"`, "/force?name=shards&key=4", `{"state":"open"}`)
	require.Equal(t, 1, shards.Len(), "asking for a key does not add it")
}

func TestListShowsObjectsAndPartsOnce(t *testing.T) {
	g := weir.New("payments", weir.Config{})
	k := newHandlerTest(t, g, g.Breaker(), g, weir.NewGroup[string]("hosts", weir.GroupConfig{}))
	list := k.send("GET", "/objects", "").Objects
	require.Len(t, list, 2)
	require.Equal(t, []string{"force", "release", "drain", "reset", "hold"}, list[0].Actions)
	require.Equal(t, "gate_group", list[1].Kind)
	k.handler.Remove(g)
	k.requireRefused(404, "there is no object", "/drain?name=hidden", ``)
	require.Len(t, k.send("GET", "/objects", "").Objects, 2, "the breaker is shown without its gate")
	require.Equal(t, "breaker", k.send("GET", "/object?name=payments", "").Kind)
}

func TestNamesOfSources(t *testing.T) {
	k := newHandlerTest(t, breaker.New("x", breaker.Config{}))
	require.ErrorContains(t, k.handler.Add(breaker.New("x", breaker.Config{})), `two different sources are the breaker "x"`)
	require.ErrorContains(t, k.handler.Add(nil), "source 1 of 1 is nil")
	require.NoError(t, k.handler.Add(limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "x", Rate: limiter.PerSecond(1)})))
	k.requireRefused(409, "add kind=…: breaker, limiter", "/force?name=x", `{"state":"open"}`)
	require.Equal(t, "forced_open", k.sendAction("force", "name=x&kind=breaker", `{"state":"open"}`).State)
}
