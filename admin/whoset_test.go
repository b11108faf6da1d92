package admin_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

// whoSetCase is a timed action on an object, and how the program sets the same value.
type whoSetCase struct {
	what         string
	source       func() (object stat.Source, program func() error)
	target, body string // of the action; the object is x
	value        func(a answer) any
	before, set  any
}

var (
	five, twenty = limiter.PerSecond(5), limiter.PerSecond(20)

	rateOf  = func(a answer) any { return a.Rate }
	slotsOf = func(a answer) any { return a.MaxConcurrent }
	stateOf = func(a answer) any { return a.State }
)

func whoSetCases() []whoSetCase {
	gateConfig := func(r limiter.Rate, n int) weir.Config { return weir.Config{Rate: r, MaxConcurrent: n} }
	both := `"rate":"5/s","max_concurrent":3`
	bothOf := func(a answer) any { return []any{a.Rate, a.MaxConcurrent} }
	limitConfig := func(p weirhttp.Policy) weirhttp.LimitConfig {
		p.Name, p.By = "x", weirhttp.ByIP
		return weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}
	}
	limit := func(from, to weirhttp.Policy) func() (stat.Source, func() error) {
		return func() (stat.Source, func() error) {
			l := weirhttp.NewLimit(limitConfig(from))
			return l, func() error { return l.Reconfigure(limitConfig(to)) }
		}
	}
	return []whoSetCase{
		{"Breaker.Force", func() (stat.Source, func() error) {
			b := breaker.New("x", breaker.Config{})
			return b, func() error {
				b.Force(breaker.ForcedOpen, "")
				return nil
			}
		}, "force", `"state":"open"`, stateOf, "closed", "forced_open"},
		{"Breaker.Release", func() (stat.Source, func() error) {
			b := breaker.New("x", breaker.Config{})
			b.Force(breaker.ForcedOpen, "")
			return b, func() error {
				b.Release()
				return nil
			}
		}, "release", "", stateOf, "forced_open", "closed"},
		{"Gate.Reconfigure", func() (stat.Source, func() error) {
			g := weir.New("x", gateConfig(twenty, 9))
			return g, func() error { return g.Reconfigure(gateConfig(five, 3)) }
		}, "limits", both, bothOf, []any{"20/s", 9}, []any{"5/s", 3}},
		{"weir.Group.Reconfigure", func() (stat.Source, func() error) {
			g := weir.NewGroup[string]("x", weir.GroupConfig{Gate: gateConfig(twenty, 9)})
			return g, func() error { return g.Reconfigure(weir.GroupConfig{Gate: gateConfig(five, 3)}) }
		}, "limits", both, bothOf, []any{"20/s", 9}, []any{"5/s", 3}},
		{"SetRate", func() (stat.Source, func() error) {
			b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "x", Rate: twenty})
			return b, func() error { return b.SetRate(five) }
		}, "limits", `"rate":"5/s"`, rateOf, "20/s", "5/s"},
		{"SetBurst", func() (stat.Source, func() error) {
			b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "x", Rate: twenty, Burst: 2})
			return b, func() error { return b.SetBurst(7) }
		}, "limits", `"burst":7`, func(a answer) any { return a.Burst }, 2, 7},
		{"limiter.Group.Reconfigure", func() (stat.Source, func() error) {
			c := limiter.GroupConfig[string]{Name: "x", Rate: twenty}
			g := limiter.NewGroup(c)
			return g, func() error {
				c.Rate = five
				return g.Reconfigure(c)
			}
		}, "limits", `"rate":"5/s"`, rateOf, "20/s", "5/s"},
		{"inflight.Limiter.Reconfigure", func() (stat.Source, func() error) {
			l := inflight.New(inflight.Config{Name: "x", Limit: 9})
			return l, func() error { return l.Reconfigure(inflight.Config{Name: "x", Limit: 3}) }
		}, "limits", `"max_concurrent":3`, slotsOf, 9, 3},
		{"Throttle.Reconfigure", func() (stat.Source, func() error) {
			t := throttle.New("x", throttle.Config{})
			return t, func() error { return t.Reconfigure(throttle.Config{K: 3}) }
		}, "limits", `"k":3`, func(a answer) any { return a.K }, 2.0, 3.0},
		{
			"rate of a policy", limit(weirhttp.Policy{Rate: twenty}, weirhttp.Policy{Rate: five}),
			"limits", `"rate":"5/s"`, rateOf, "20/s", "5/s",
		},
		{
			"quota of a policy", limit(weirhttp.Policy{Limit: 9, Window: time.Hour}, weirhttp.Policy{Limit: 3, Window: time.Hour}),
			"limits", `"limit":3`, func(a answer) any { return a.Limit }, 9, 3,
		},
	}
}

// The program sets the value of a timed action itself, for example because it is in a file now. The
// end of the action undoes only what the action has set, so the value stays.
func TestTheEndOfAnActionKeepsTheSameValueOfTheProgram(t *testing.T) {
	for _, c := range whoSetCases() {
		for _, meanwhile := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				object, program := c.source()
				k := newHandlerTest(t, object)
				query, want, reason := "name=x", c.before, ""
				first := k.send("GET", "/object?name=x", "")
				require.Equal(t, c.before, c.value(first), c.what)
				if first.Keys {
					query += "&all=true"
				}
				a := k.sendAction(c.target, query, "{"+c.body+map[bool]string{true: ","}[c.body != ""]+`"for":"1m"}`)
				require.Equal(t, c.set, c.value(a), c.what)
				if meanwhile {
					require.NoError(t, program(), c.what)
					want, reason = c.set, "was changed by other means, and stays"
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				a = k.send("GET", "/object?name=x", "")
				require.Equal(t, want, c.value(a), "%s: meanwhile %v", c.what, meanwhile)
				require.Contains(t, a.History[1].Reason, reason, c.what)
			})
		}
	}
}

// A rate and a bound of one object are set separately. If the program sets one of them, the end of
// an action restores the other one.
func TestTheEndOfAnActionRestoresTheOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := inflight.New(inflight.Config{Name: "slots", Limit: 9})
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "bucket", Rate: twenty})
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("g", breaker.Config{}), Limiter: bucket, InFlight: slots})
		k := newHandlerTest(t, g, slots, bucket)
		k.sendAction("limits", "name=g", `{"rate":"5/s","max_concurrent":3,"for":"1m"}`)
		require.NoError(t, slots.Reconfigure(inflight.Config{Name: "slots", Limit: 3}))
		time.Sleep(time.Minute)
		synctest.Wait()
		a := k.send("GET", "/object?name=g", "")
		require.Equal(t, []any{"20/s", 3}, []any{a.Rate, a.MaxConcurrent})
		require.Equal(t, "a part of the limits was changed by other means, and stays", a.History[1].Reason)

		// A change without an end keeps its own limit alone.
		k.sendAction("limits", "name=g", `{"rate":"5/s","for":"1m"}`)
		a = k.sendAction("limits", "name=g", `{"max_concurrent":4}`)
		require.Equal(t, "20/s", a.Timed[0].ReturnsTo)
		time.Sleep(time.Minute)
		synctest.Wait()
		a = k.send("GET", "/object?name=g", "")
		require.Equal(t, []any{"20/s", 4}, []any{a.Rate, a.MaxConcurrent})

		// The limits of a gate can be those of another object too. An action on that object within
		// an action on the gate leaves nothing behind.
		k.sendAction("limits", "name=g", `{"rate":"5/s","max_concurrent":7,"for":"1h"}`)
		k.sendAction("limits", "name=bucket", `{"rate":"2/s","for":"1m"}`)
		k.sendAction("limits", "name=slots", `{"max_concurrent":2,"for":"1m"}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		a = k.send("GET", "/object?name=g", "")
		require.Equal(t, []any{"5/s", 7}, []any{a.Rate, a.MaxConcurrent})
		time.Sleep(time.Hour)
		synctest.Wait()
		a = k.send("GET", "/object?name=g", "")
		require.Equal(t, []any{"20/s", 4}, []any{a.Rate, a.MaxConcurrent})
	})
}

// The override of a group lies over those of its keys that were set before it. Each ends in time,
// whatever the order is.
func TestOverridesOfAGroupAndOfAKeyEndSeparately(t *testing.T) {
	const group, key = "name=hosts&all=true", "name=hosts&key=a"
	for _, c := range []struct {
		what                string
		first, second       string // the queries of two actions
		state, other        string // that they set
		firstEnds           time.Duration
		secondEnds          time.Duration
		atOne, atTwo, after breaker.State // after one minute, two minutes, and three minutes
	}{
		{"key within the group", group, key, "open", "closed", 3 * time.Minute, 2 * time.Minute, "forced_closed", "forced_open", "closed"},
		{"key outlives the group", group, key, "open", "closed", 2 * time.Minute, 3 * time.Minute, "forced_closed", "forced_closed", "closed"},
		{"group outlives the key", key, group, "open", "shadow", 2 * time.Minute, 3 * time.Minute, "shadow", "shadow", "closed"},
		{"group outlives the key, the same state", key, group, "open", "open", 2 * time.Minute, 3 * time.Minute, "forced_open", "forced_open", "closed"},
		{"group within the key", key, group, "closed", "open", 3 * time.Minute, 2 * time.Minute, "forced_open", "forced_closed", "closed"},
		{"key within the group, the same state", group, key, "open", "open", 3 * time.Minute, 2 * time.Minute, "forced_open", "forced_open", "closed"},
		{"key outlives the group, the same state", group, key, "open", "open", 2 * time.Minute, 3 * time.Minute, "forced_open", "forced_open", "closed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
				state := func() breaker.State { return hosts.Get("a").Breaker().State() }
				state()
				k := newHandlerTest(t, hosts)
				force := func(query, state string, d time.Duration) {
					k.sendAction("force", query, `{"state":"`+state+`","for":"`+d.String()+`"}`)
				}
				force(c.first, c.state, c.firstEnds)
				force(c.second, c.other, c.secondEnds)
				for i, want := range []breaker.State{c.atOne, c.atTwo, c.after} {
					require.Equal(t, want, state(), "before minute %d", i+1)
					if i == 0 {
						time.Sleep(time.Minute)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				require.Equal(t, c.after, state())
			})
		})
	}
}

// A key whose override was set after that of its group returns to it.
func TestTheEndOfAnActionReturnsToALaterOverrideOfTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
		b := hosts.Get("a")
		k := newHandlerTest(t, hosts)
		k.sendAction("force", "name=hosts&all=true", `{"state":"open"}`)
		b.Force(breaker.ForcedClosed, "")
		a := k.sendAction("force", "name=hosts&key=a", `{"state":"shadow","for":"1m"}`)
		require.Equal(t, "forced_closed", a.Timed[0].ReturnsTo)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.ForcedClosed, b.State())
		k.sendAction("release", "name=hosts&all=true", "")
		require.Equal(t, breaker.ForcedClosed, b.State())
	})
}

// The breakers of a link return to the overrides that each had.
func TestTheEndOfAnActionOnALinkRestoresEachServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink().(linkSource)
		k := newHandlerTest(t, l)
		l.second.Force(breaker.ForcedOpen, "")
		a := k.sendAction("drain", "name=x&all=true", `{"for":"1m"}`)
		require.Equal(t, "forced_open, no override", a.Timed[0].ReturnsTo)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Closed, l.first.State())
		require.Equal(t, breaker.ForcedOpen, l.second.State())
	})
}

// A new object with the name of a removed one has a history of its own, and the actions on the
// removed one end in time.
func TestAnObjectDoesNotInheritTheActionsOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := breaker.New("b", breaker.Config{}), breaker.New("b", breaker.Config{})
		k := newHandlerTest(t, old)
		k.sendAction("force", "name=b", `{"state":"open","for":"1m"}`)
		k.handler.Remove(old)
		require.NoError(t, k.handler.Add(next))
		a := k.send("GET", "/object?name=b", "")
		require.Empty(t, a.Timed)
		require.Empty(t, a.History)
		k.sendAction("force", "name=b", `{"state":"closed"}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Closed, old.State())
		require.Equal(t, breaker.ForcedClosed, next.State())
		require.Len(t, k.send("GET", "/object?name=b", "").History, 1)
	})
}

func TestAResetEndsTheHoldThatIsListed(t *testing.T) {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: twenty})
	k := newHandlerTest(t, users, breaker.New("b", breaker.Config{}))
	for _, c := range []struct{ hold, reset, look string }{
		{"name=users&key=bob", "name=users&key=bob", "name=users&key=bob"},
		{"name=users&key=bob", "name=users&all=true", "name=users&key=bob"},
		{"name=users&all=true", "name=users&all=true", "name=users"},
	} {
		a := k.sendAction("hold", c.hold, `{"for":"1h"}`)
		require.Equal(t, "hold", a.Timed[0].What)
		k.sendAction("reset", c.reset, "")
		require.True(t, users.Get("bob").Take(1).OK)
		require.Empty(t, k.send("GET", "/object?"+c.look, "").Timed, c.reset)
	}
}
