package admin_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestForceOfAWholeGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []breaker.Change
		var mu sync.Mutex
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{MaxKeys: 4, MaxSeries: breaker.Off, Gate: weir.Config{Breaker: breaker.Config{
			OnChange: func(c breaker.Change) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, c)
			},
		}}})
		state := func(key string) breaker.State { return hosts.Get(key).Breaker().State() }
		state("plain")
		hosts.Get("own").Breaker().Force(breaker.Shadow, "")
		k := newHandlerTest(t, hosts)
		a := k.sendAction("force", "name=hosts&all=true", `{"state":"open","for":"10m","reason":"ticket 17"}`)
		require.Equal(t, "forced_open", a.State)
		require.Equal(t, "no override", a.Timed[0].ReturnsTo)
		for _, key := range []string{"plain", "own", "new"} {
			require.Equal(t, breaker.ForcedOpen, state(key), key)
		}
		require.Equal(t, "forced by alice: ticket 17", changes[len(changes)-1].Reason)

		k.sendAction("force", "name=hosts&key=plain", `{"state":"disabled"}`)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, breaker.Disabled, state("plain"), "the key was changed since")
		require.Equal(t, breaker.Shadow, state("own"), "the override that the key had before returns")
		require.Equal(t, breaker.Closed, state("new"))
		require.Equal(t, breaker.Closed, state("later"))
		require.Empty(t, k.send("GET", "/object?name=hosts", "").State)
		require.Equal(t, "no override", k.send("GET", "/object?name=hosts", "").History[0].Before)
		require.Equal(t, "end", k.send("GET", "/object?name=hosts", "").History[1].Verb)
	})
}

func TestForceOfAGroupReplacesAnother(t *testing.T) {
	shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{})
	shards.Get(1)
	shards.Get(2).Force(breaker.ForcedOpen, "")
	shards.Get(4).Force(breaker.Disabled, "")
	k := newHandlerTest(t, shards)
	k.sendAction("force", "name=shards&all=true", `{"state":"shadow"}`)
	k.sendAction("release", "name=shards&key=4", "")
	k.sendAction("force", "name=shards&all=true", `{"state":"open"}`)
	shards.Get(3)
	require.Len(t, k.send("GET", "/members?name=shards&state=forced_open", "").Members, 4)
	k.sendAction("release", "name=shards&all=true", "")
	require.Equal(t, breaker.Closed, shards.Get(1).State())
	require.Equal(t, breaker.ForcedOpen, shards.Get(2).State(), "the override of its own stays")
	require.Equal(t, breaker.Closed, shards.Get(3).State())
	require.Equal(t, breaker.Closed, shards.Get(4).State(), "it was released meanwhile")
}

// After the release, all keys are in the override of the Config, also those that were added while
// the group was forced.
func TestForceOfAGroupThatItsConfigForces(t *testing.T) {
	for _, state := range []breaker.State{breaker.Shadow, breaker.Disabled, breaker.ForcedOpen, breaker.ForcedClosed} {
		shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{Breaker: breaker.Config{Force: state}})
		shards.Get(1)
		k := newHandlerTest(t, shards)
		k.sendAction("force", "name=shards&all=true", `{"state":"open"}`)
		require.Equal(t, breaker.ForcedOpen, shards.Get(2).State())
		k.sendAction("force", "name=shards&all=true", `{"state":"closed"}`)
		require.Equal(t, breaker.ForcedClosed, shards.Get(2).State())
		require.Equal(t, breaker.ForcedClosed, shards.Get(3).State())
		k.sendAction("release", "name=shards&all=true", "")
		for key := range 4 {
			require.Equal(t, state, shards.Get(key).State(), "key %d", key)
		}
	}
}

// A key for which the group has no room has no breaker. Its calls are refused nevertheless while
// the group is forced open.
func TestForceOfAGroupWithoutRoom(t *testing.T) {
	shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off})
	k := newHandlerTest(t, shards)
	for key := range 2 { // calls in flight keep their keys
		_, err := shards.Get(key).Allow()
		require.NoError(t, err)
	}
	for verb, want := range map[string]breaker.State{`{"state":"open"}`: breaker.ForcedOpen, `{"state":"shadow"}`: breaker.ForcedClosed} {
		k.sendAction("force", "name=shards&all=true", verb)
		require.Equal(t, want, shards.Get(7).State())
		k.sendAction("release", "name=shards&all=true", "")
		require.Equal(t, breaker.ForcedClosed, shards.Get(7).State())
	}
}

func TestResetOfAWholeGroup(t *testing.T) {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerMinute(1), MaxKeys: 2, ShareNew: true})
	k := newHandlerTest(t, hosts, users)
	for _, key := range []string{"a", "b", "c"} {
		hosts.Get(key).Breaker().OpenFor(time.Hour)
		require.True(t, users.Get(key).Take(1).OK)
		users.Get(key).Hold(time.Hour)
	}
	k.sendAction("reset", "name=hosts&all=true", "")
	k.sendAction("hold", "name=users&all=true", `{"for":"1h"}`)
	k.sendAction("reset", "name=users&all=true", "")
	require.Zero(t, users.Len())
	for _, key := range []string{"a", "b", "c"} {
		require.Equal(t, breaker.Closed, hosts.Get(key).Breaker().State())
		require.True(t, users.Get(key).Take(1).OK)
	}
	require.Equal(t, 2, users.Len())
}

func TestHoldOfAWholeGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(10)}})
		free := weir.NewGroup[string]("free", weir.GroupConfig{})
		users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(1), Burst: 5, MaxKeys: 10})
		k := newHandlerTest(t, hosts, free, users)
		hosts.Get("known")
		users.Get("known").Take(5)
		for _, name := range []string{"hosts", "free", "users"} {
			k.sendAction("hold", "all=true&name="+name, `{"for":"1m"}`)
			k.sendAction("hold", "all=true&name="+name, `{"for":"1s"}`)
		}
		k.sendAction("limits", "name=users&all=true", `{"rate":"2/s"}`)
		allowed := func() (n int) {
			for _, key := range []string{"known", "new", "other", "fourth"} {
				for _, g := range []*weir.Group[string]{hosts, free} {
					if permit, err := g.Get(key).Allow(t.Context()); err == nil {
						permit.Record(t.Context(), nil, breaker.Success)
						n++
					}
				}
				if users.Get(key).Take(1).OK {
					n++
				}
			}
			return n
		}
		require.Zero(t, allowed())
		time.Sleep(time.Minute - 1)
		require.Zero(t, allowed())
		time.Sleep(time.Nanosecond)
		require.Equal(t, 12, allowed())
		require.False(t, users.Get("known").Take(1).OK, "there is one token after a hold")
		require.False(t, users.Get("new").Take(1).OK)
		time.Sleep(time.Hour)
		require.True(t, users.Get("known").Take(5).OK, "the hold leaves nothing behind")
		require.True(t, users.Get("new").Take(5).OK)
	})
}

// No call passes after a force has returned, whether its key is old, new, evicted or without room,
// and all calls pass after the release.
func TestForceOfAGroupIsCompleteUnderLoad(t *testing.T) {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{MaxKeys: 64, MaxSeries: breaker.Off})
	k := newHandlerTest(t, hosts)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for caller := range 3 {
		callers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if permit, err := hosts.Get(strconv.Itoa(caller*1000 + i%100)).Allow(t.Context()); err == nil {
					permit.Record(t.Context(), nil, breaker.Ignored)
				}
			}
		})
	}
	for round := range 15 {
		query := "name=hosts&kind=gate_group&all=true"
		k.sendAction("force", query, `{"state":"open"}`)
		for i := range 80 {
			_, err := hosts.Get(strconv.Itoa(round*10 + i)).Allow(t.Context())
			require.ErrorIs(t, err, weir.ErrRefused)
		}
		k.sendAction("release", query, "")
		for i := range 80 {
			permit, err := hosts.Get(strconv.Itoa(round*10 + i)).Allow(t.Context())
			require.NoError(t, err)
			permit.Record(t.Context(), nil, breaker.Ignored)
		}
	}
	close(stop)
	callers.Wait()
}
