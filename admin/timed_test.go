package admin_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

func TestATimedActionEndsAutomatically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		k := newHandlerTest(t, b)
		before := runtime.NumGoroutine()
		a := k.sendAction("force", "name=b", `{"state":"open","for":"10m"}`)
		require.Equal(t, before, runtime.NumGoroutine(), "only a timer waits")
		require.Equal(t, time.Now().Add(10*time.Minute).Format(time.RFC3339Nano), a.Timed[0].Until)
		time.Sleep(10*time.Minute - 1)
		require.Equal(t, breaker.ForcedOpen, b.State())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, breaker.Closed, b.State())
		d := k.send("GET", "/object?name=b", "")
		require.Empty(t, d.Timed)
		require.Equal(t, "end", d.History[1].Verb)
		require.Equal(t, "no override", d.History[1].After)
		require.Contains(t, k.logs.text(), "verb=end")
	})
}

// At the end of several timed actions, the state before the first of them returns.
func TestASecondActionReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		b.Force(breaker.Shadow, "")
		k := newHandlerTest(t, b)
		k.sendAction("force", "name=b", `{"state":"open","for":"10m"}`)
		time.Sleep(9 * time.Minute)
		k.sendAction("release", "name=b", `{"for":"10m"}`)
		time.Sleep(9 * time.Minute)
		require.Equal(t, breaker.Closed, b.State(), "the first action has not ended it")
		k.sendAction("force", "name=b", `{"state":"closed","for":"1h"}`)
		time.Sleep(59 * time.Minute)
		require.Equal(t, breaker.ForcedClosed, b.State())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Shadow, b.State())

		k.sendAction("force", "name=b", `{"state":"open","for":"10m"}`)
		k.sendAction("force", "name=b", `{"state":"open"}`)
		time.Sleep(time.Hour)
		require.Equal(t, breaker.ForcedOpen, b.State(), "an action without a duration stays")
		require.Empty(t, k.send("GET", "/object?name=b", "").Timed)
	})
}

func TestTheEndOfAnActionKeepsChangesByOtherMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		k := newHandlerTest(t, b)
		k.sendAction("force", "name=b", `{"state":"open","for":"10m"}`)
		b.Force(breaker.Disabled, "")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Disabled, b.State())
		h := k.send("GET", "/object?name=b", "").History
		require.Contains(t, h[1].Reason, "changed by other means")

		k.sendAction("force", "name=b", `{"state":"open","for":"10m"}`)
		b.Release()
		k.sendAction("force", "name=b", `{"state":"shadow","for":"10m"}`)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Closed, b.State(), "what returns is the state that the program has set")
	})
}

func TestLimitsReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(10), MaxConcurrent: 4}})
		users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(10), Burst: 3})
		adaptive := inflight.New(inflight.Config{Name: "adaptive", Adaptive: true, Limit: 50})
		k := newHandlerTest(t, hosts, users, adaptive)
		k.sendAction("limits", "name=hosts&all=true", `{"rate":"1/s","max_concurrent":1,"for":"1m"}`)
		k.sendAction("limits", "name=users&all=true", `{"rate":"1/s","for":"1m"}`)
		k.sendAction("limits", "name=adaptive", `{"max_concurrent":5,"for":"1m"}`)
		time.Sleep(30 * time.Second)
		k.sendAction("limits", "name=users&all=true", `{"burst":1,"for":"1m"}`)
		require.Equal(t, 1, hosts.Get("a").Limiter().Take(0).Limit)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, 10, hosts.Get("a").Limiter().Take(0).Limit)
		require.Equal(t, 4, k.send("GET", "/object?name=hosts", "").MaxConcurrent)
		require.Equal(t, 50, k.send("GET", "/object?name=adaptive", "").MaxConcurrent)
		require.Equal(t, "1/s", k.send("GET", "/object?name=users", "").Rate)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		u := k.send("GET", "/object?name=users", "")
		require.Equal(t, "10/s", u.Rate)
		require.Equal(t, 3, u.Burst)
	})
}

// An override and a change of limits of one object do not end each other.
func TestAspectsAreSeparate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10)})
		k := newHandlerTest(t, g)
		k.sendAction("force", "name=g", `{"state":"open","for":"2m"}`)
		k.sendAction("limits", "name=g", `{"rate":"1/s","for":"1m"}`)
		require.Len(t, k.send("GET", "/object?name=g", "").Timed, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 10, g.Limiter().Take(0).Limit)
		require.Equal(t, breaker.ForcedOpen, g.Breaker().State())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Closed, g.Breaker().State())
	})
}

func TestHistoryIsBoundedAndNamesUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newHandlerTest(t, breaker.New("b", breaker.Config{}))
		for i := range 25 {
			k.sendAction("force", "name=b", fmt.Sprintf(`{"state":"open","reason":"r%d"}`, i))
			time.Sleep(time.Second)
		}
		h := k.send("GET", "/object?name=b", "").History
		require.Len(t, h, 20)
		require.Equal(t, "r5", h[0].Reason)
		require.Equal(t, "r24", h[19].Reason)
		require.Equal(t, "alice", h[19].User)
		require.Equal(t, "force", h[19].Verb)
		require.Equal(t, 25, strings.Count(k.logs.text(), "event.name=weir.admin.action"))
		require.Contains(t, k.logs.text(), "verb=force kind=breaker name=b user=alice")
	})
}

func TestObjectsWithHistoryAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{})
		k := newHandlerTest(t, g)
		act := func(key int, body string) answer {
			g.Get(key)
			time.Sleep(100 * time.Millisecond)
			return k.send("POST", fmt.Sprintf("/force?name=g&key=%d", key), body)
		}
		require.Equal(t, 200, act(0, `{"state":"open"}`).Status)
		for i := 1; i < 1000; i++ {
			require.Equal(t, 200, act(i, `{"state":"open","for":"720h"}`).Status)
		}
		require.Equal(t, 200, act(1000, `{"state":"open","for":"1h"}`).Status, "the history of key 0 makes room")
		require.Empty(t, k.send("GET", "/object?name=g&key=0", "").History)
		require.Equal(t, 503, act(1001, `{"state":"open"}`).Status)
		require.Equal(t, breaker.Closed, g.Get(1001).State())
		time.Sleep(time.Hour)
		require.Equal(t, 200, act(1001, `{"state":"open"}`).Status)
	})
}
