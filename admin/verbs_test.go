package admin_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

// linkSource is a source with the methods of a fleet.Link.
type linkSource struct{ first, second *breaker.Breaker }

func newLink() stat.Source {
	return linkSource{breaker.New("x", breaker.Config{}), breaker.New("x", breaker.Config{})}
}

func (linkSource) Observe(func(*stat.Series, float64) bool) {}
func (linkSource) Name() string                             { return "x" }

func (l linkSource) Breakers() iter.Seq2[string, *breaker.Breaker] {
	return func(yield func(string, *breaker.Breaker) bool) {
		_ = yield("", l.first) && yield("b:6379", l.second)
	}
}

// remoteSource is a source with the methods of a fleet.Limiter.
type remoteSource struct{ resets *[]string }

func (remoteSource) Observe(func(*stat.Series, float64) bool) {}
func (remoteSource) Name() string                             { return "x" }
func (remoteSource) Busiest(int) []limiter.BusyKey {
	return []limiter.BusyKey{{Limiter: "x", Key: "bob"}}
}

func (r remoteSource) Reset(_ context.Context, key string) error {
	if key == "down" {
		return errors.New("redis is unavailable")
	}
	if r.resets != nil {
		*r.resets = append(*r.resets, key)
	}
	return nil
}

// holdSource is a source of a user that has one verb.
type holdSource struct{ held *time.Duration }

func (holdSource) Observe(func(*stat.Series, float64) bool) {}
func (holdSource) Name() string                             { return "x" }
func (h holdSource) Hold(d time.Duration)                   { *h.held = d }

func newMonitor() stat.Source {
	return alert.NewMonitor(alert.Config{Instance: "x", Notify: []alert.Notifier{alert.Log(slog.New(slog.DiscardHandler))}})
}

func newPolicy(p weirhttp.Policy) func() stat.Source {
	p.Name, p.By = "x", weirhttp.ByIP
	return func() stat.Source { return weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}) }
}

// verbCase is an object with the name x, and the actions that it has.
type verbCase struct {
	what, query, limits string
	actions             string
	source              func() stat.Source
}

func newGateGroup() stat.Source {
	g := weir.NewGroup[string]("x", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(5), MaxConcurrent: 3}})
	g.Get("k")
	return g
}

func newBreakerGroup() stat.Source {
	g := breaker.NewGroup[string]("x", breaker.GroupConfig{})
	g.Get("k")
	return g
}

func newBucketGroup() stat.Source {
	g := limiter.NewGroup(limiter.GroupConfig[string]{Name: "x", Rate: limiter.PerSecond(5)})
	g.Get("k").Take(1)
	return g
}

// verbCases are objects of each kind, and keys of those that have keys.
func verbCases() []verbCase {
	rate := limiter.PerSecond(5)
	overrides, key, all := "force release drain reset", "&key=k", "&all=true"
	return []verbCase{
		{"gate", "", `"rate":"7/s","max_concurrent":2`, overrides + " hold limits", func() stat.Source {
			return weir.New("x", weir.Config{Rate: rate, MaxConcurrent: 3})
		}},
		{"gate_group", all, `"rate":"7/s","burst":2,"max_concurrent":2`, overrides + " hold limits", newGateGroup},
		{"gate of a group", key, "", overrides + " hold", newGateGroup},
		{"breaker", "", "", overrides, func() stat.Source { return breaker.New("x", breaker.Config{}) }},
		{"breaker_group", all, "", overrides, newBreakerGroup},
		{"breaker of a group", key, "", overrides, newBreakerGroup},
		{"limiter", "", `"rate":"7/s"`, "hold limits", func() stat.Source {
			return limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "x", Rate: rate})
		}},
		{"a limiter without verbs", "", "", "", func() stat.Source {
			return limiter.NewSlidingWindow(limiter.WindowConfig{Name: "x", Limit: 1, Window: time.Second})
		}},
		{"limiter_group", all, `"burst":7`, "reset hold limits", newBucketGroup},
		{"limiter of a group", key, "", "reset hold", newBucketGroup},
		{"inflight", "", `"max_concurrent":2`, "limits", func() stat.Source { return inflight.New(inflight.Config{Name: "x", Limit: 3}) }},
		{"throttle", "", `"k":1.5,"max_refusal":0.5`, "reset limits", func() stat.Source { return throttle.New("x", throttle.Config{}) }},
		{"policy with a rate", all, `"rate":"7/s"`, "reset hold limits", newPolicy(weirhttp.Policy{Rate: rate})},
		{"policy with a window", all, `"limit":7`, "reset limits", newPolicy(weirhttp.Policy{Limit: 3, Window: time.Hour})},
		{"key of a policy", key, "", "reset", newPolicy(weirhttp.Policy{Rate: rate})},
		{"monitor", "", "", "silence unsilence test", newMonitor},
		{"link", all, "", overrides, newLink},
		{"breaker of a link", "&key=b:6379", "", overrides, newLink},
		{"other with verbs of keys", all, "", "", func() stat.Source { return remoteSource{} }},
		{"key of another source", key, "", "reset", func() stat.Source { return remoteSource{} }},
		{"other", "", "", "hold", func() stat.Source { return holdSource{new(time.Duration)} }},
	}
}

// Each verb succeeds, is logged and is in the history, or is refused with the verbs that the object
// has.
func TestEveryVerbOfEveryKind(t *testing.T) {
	verbs := []string{"force", "release", "drain", "reset", "hold", "limits", "silence", "unsilence", "test"}
	for _, c := range verbCases() {
		for _, verb := range verbs {
			t.Run(c.what+"/"+verb, func(t *testing.T) {
				body := map[string]string{
					"force": `"state":"open","for":"1m"`, "hold": `"for":"1m"`, "limits": c.limits, "silence": `"match":["alertname=r"],"for":"1m","silence":"s"`,
					"unsilence": `"silence":"s"`, "test": `"notifier":"log"`,
				}[verb]
				if verb == "limits" && body == "" {
					body = `"rate":"7/s"`
				}
				k := newHandlerTest(t, c.source())
				actions := strings.Fields(c.actions)
				target := "/" + verb + "?name=x" + c.query
				if !slices.Contains(actions, verb) {
					k.requireRefused(409, verb+" is not possible for ", target, "{"+body+"}")
					k.requireRefused(409, "which has: "+cmp.Or(strings.Join(actions, ", "), "none"), target, "{"+body+"}")
					return
				}
				if verb == "unsilence" {
					k.sendAction("silence", "name=x", `{"match":["alertname=r"],"for":"1m","silence":"s"}`)
				}
				body = strings.TrimPrefix(body+`,"reason":"ticket 17"`, ",")
				a := k.sendAction(verb, "name=x"+c.query, "{"+body+"}")
				require.Equal(t, actions, a.Actions)
				history := k.send("GET", "/object?name=x"+strings.TrimPrefix(c.query, "&all=true"), "").History
				last := history[len(history)-1]
				require.Equal(t, []string{verb, "alice", "ticket 17"}, []string{last.Verb, last.User, last.Reason})
				require.Regexp(t, `event.name=weir.admin.action verb=`+verb+` kind=\w+ name=x .*user=alice .*reason="ticket 17"`, k.logs.text())
				if verb == "force" {
					k.sendAction("release", "name=x"+c.query, "")
				}
			})
		}
	}
}
