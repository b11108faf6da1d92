package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
)

// redis-cell rounds a wait of a tenth of a second up to a second, so a remembered refusal would be
// too long.
func TestRefusalsOfTheModuleAreNotRemembered(t *testing.T) {
	f := newFakeServer(t, map[string]string{
		"command":     "*1\r\n*6\r\n$11\r\ncl.throttle\r\n:-1\r\n*0\r\n:1\r\n:1\r\n:1\r\n",
		"cl.throttle": integerReply(1, 1, 0, 1, 1),
	})
	b := newLimiter(connectTo(t, f.client(), fleet.LinkConfig{Timeout: longTimeout}), "cell", rediscell.Limit(0, 10, time.Second), errorOnOutage)
	requireTake(t, refused, b.Take, "user", 1)
	f.setReply("cl.throttle", integerReply(0, 1, 0, -1, 1))
	requireTake(t, taken, b.Take, "user", 1)
}

// A value that only begins like a valid one is foreign and is not changed.
func TestForeignValuesThatLookLikeOurs(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	limiters := ofEachKind(l, "alike", time.Minute)
	live := time.Now().Add(time.Second).UnixMicro()
	for _, c := range []struct {
		kind  string
		write []any
		own   bool // whether the limiter writes to the key first
	}{
		{"sliding", []any{"set", "w100 hello world"}, false},
		{"sliding", []any{"set", "w12"}, false},
		{"sliding", []any{"set", "w5 1:2 x"}, false},
		{"sliding", []any{"set", "w99999999999999999999 1:1"}, false},
		{"fixed", []any{"set", "f99999999999999999999 1"}, false},
		{"quota", []any{"set", "q5 6"}, false},
		{"quota", []any{"set", "q6 5 1"}, false},
		{"quota", []any{"set", "q5 6 2147483648"}, false},
		{"quota", []any{"set", "q0 9007199254740992 1"}, false},
		{"quota", []any{"set", "q5 99999999999999999999 1"}, false},
		{"log", []any{"zadd", 17, "x"}, true},
		{"log", []any{"zadd", live, "x"}, true},
	} {
		key, b := newKey(), limiters[c.kind]
		if c.own {
			_, err := b.Take(t.Context(), key, 1)
			require.NoError(t, err)
		}
		held := b.StateKeys(key)[0]
		require.NoError(t, direct.Do(t.Context(), append([]any{c.write[0], held}, c.write[1:]...)...).Err())
		before := direct.Dump(t.Context(), held).Val()
		_, err := b.Take(t.Context(), key, 1)
		require.ErrorIs(t, err, fleet.ErrForeign, "%s: %v", c.kind, c.write)
		require.ErrorIs(t, b.Refund(t.Context(), time.Now(), key, 1), fleet.ErrForeign)
		require.Equal(t, before, direct.Dump(t.Context(), held).Val())
	}
	require.Zero(t, l.Breaker().Counts().Failures)
}

func TestALimitThatChangesKeepsWhatWasTaken(t *testing.T) {
	l := connect(t)
	at := testStart.Add(30*time.Minute + 10*time.Second)
	for _, c := range []struct {
		before, after fleet.FixedWindow
		left          int
	}{
		{fleet.FixedWindow{Limit: 10, Window: time.Hour}, fleet.FixedWindow{Limit: 12, Window: time.Hour}, 2},
		{fleet.FixedWindow{Limit: 10, Window: time.Minute}, fleet.FixedWindow{Limit: 12, Window: time.Hour}, 2},
		// starts again
		{fleet.FixedWindow{Limit: 10, Window: time.Hour}, fleet.FixedWindow{Limit: 12, Window: time.Minute}, 12},
	} {
		key := newKey()
		_, err := newLimiter(l, "changed", c.before, errorOnOutage).TakeAt(t.Context(), at, key, 10)
		require.NoError(t, err)
		r, err := newLimiter(l, "changed", c.after, errorOnOutage).TakeAt(t.Context(), at, key, 0)
		require.NoError(t, err)
		require.Equal(t, c.left, r.Remaining, "%v, then %v", c.before, c.after)
	}
}

// If the user lacks the rights for scripts, Connect fails.
func TestConnectRefusesAServerThatDeniesWhatIsNeeded(t *testing.T) {
	s := redistest.Start(t)
	for rules, enough := range map[string]bool{
		"~* +@all -@scripting": false,
		"~* +@all -time":       false,
		"~other:* +@all":       false,
		"~* +@all -info":       true,
		"~weir:* +@all":        true,
	} {
		t.Run(rules, func(t *testing.T) {
			setUser := []any{"ACL", "SETUSER", "bob", "reset", "on", ">open sesame"}
			for rule := range strings.FieldsSeq(rules) {
				setUser = append(setUser, rule)
			}
			s.Do(setUser...)
			c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "bob", Password: "open sesame", ContextTimeoutEnabled: true})
			defer func() { require.NoError(t, c.Close()) }()
			l, err := fleet.Connect(t.Context(), "main", c, fleet.LinkConfig{Timeout: longTimeout})
			if !enough {
				require.ErrorIs(t, err, fleet.ErrServer)
				require.EqualError(t, err, "fleet: redis main: access denied")
				return
			}
			require.NoError(t, err)
			requireTake(t, taken, newBucket(l, errorOnOutage).Take, newKey(), 1)
		})
	}
}
