package deny_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/limiter"
)

func TestRefusalsAreNotRememberedLongerThanTheMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deny.New(8, 10*time.Second)
		look := c.Lookup("k", 1)
		look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: 2 * time.Hour})
		time.Sleep(10*time.Second - 1)
		known := c.Lookup("k", 1)
		require.True(t, known.Refused)
		require.Equal(t, time.Hour-10*time.Second+1, known.Result.RetryAfter, "the result is that of the server")
		time.Sleep(time.Nanosecond)
		require.False(t, c.Lookup("k", 1).Refused)
	})
}

func TestANilCacheRemembersNothing(t *testing.T) {
	var c *deny.Cache
	look := c.Lookup("k", 1)
	look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour})
	c.Forget("k")
	require.False(t, c.Lookup("k", 1).Refused)
}

func TestKeysAreIndependent(t *testing.T) {
	c := deny.New(8, time.Hour) // one set
	refused := limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour}
	for i := range 8 {
		look := c.Lookup(fmt.Sprint(i), 1)
		look.Remember(refused)
	}
	for i := range 16 {
		require.Equal(t, i < 8, c.Lookup(fmt.Sprint(i), 1).Refused, "key %d", i)
	}
}

func TestKeysWithEqualHashesAreDifferent(t *testing.T) {
	c := deny.New(8, time.Hour)
	a, b := c.Lookup("a", 1), c.Lookup("b", 1)
	a.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour})
	b.Collide(a)
	require.False(t, b.Refused)
	b.Remember(limiter.Result{Limit: 20, RetryAfter: time.Hour, ResetAfter: time.Hour})
	require.Equal(t, 10, c.Lookup("a", 1).Result.Limit)
	b.Collide(a)
	require.Equal(t, 20, b.Result.Limit)
}

func TestFullSetReplacesTheRefusalThatEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deny.New(8, time.Hour)
		put := func(key string, d time.Duration) {
			look := c.Lookup(key, 1)
			look.Remember(limiter.Result{Limit: 10, RetryAfter: d, ResetAfter: d})
		}
		known := func() (keys string) {
			for key := 'a'; key <= 'z'; key++ {
				if c.Lookup(string(key), 1).Refused {
					keys += string(key)
				}
			}
			return keys
		}
		for i := range 8 {
			put(string(rune('a'+i)), time.Duration(10-i)*time.Second)
		}
		require.Equal(t, "abcdefgh", known())
		put("x", time.Minute)
		require.Equal(t, "abcdefgx", known(), "h would have ended after 3 s")
		time.Sleep(4500 * time.Millisecond)
		require.Equal(t, "abcdefx", known(), "g has ended after 4 s")
		put("y", time.Minute)
		require.Equal(t, "abcdefxy", known())
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := deny.New(1000, time.Hour)
	refused := limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour}
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		look := c.Lookup(keys[i], 1)
		look.Remember(refused)
	}
	var known int
	for _, key := range keys {
		if c.Lookup(key, 1).Refused {
			known++
		}
	}
	require.Equal(t, 1000, known)
}

func TestManyAtOnce(t *testing.T) {
	c := deny.New(16, time.Hour)
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for range 20_000 {
				key := fmt.Sprint(r.IntN(40))
				switch look := c.Lookup(key, 1+r.IntN(3)); {
				case r.IntN(50) == 0:
					c.Forget(key)
				case look.Refused && look.Result.Limit != 10:
					t.Errorf("a refusal that was not remembered: %+v", look.Result)
				default:
					look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Duration(r.IntN(1000)), ResetAfter: time.Second})
				}
			}
		})
	}
	g.Wait()
}
