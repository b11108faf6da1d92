package fleet

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A client that is no longer referenced is garbage collected.
func TestUnusedClientIsGarbageCollected(t *testing.T) {
	count := func() int {
		dialErrorsOf.Lock()
		defer dialErrorsOf.Unlock()
		return len(dialErrorsOf.byClient)
	}
	before := count()
	for range 100 {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		first := watchDialErrors(client)
		require.Same(t, first, watchDialErrors(client))
		require.NoError(t, client.Close())
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return count() <= before
	}, time.Minute, time.Millisecond)
}

// A failed dial of another clock is not the cause of a timeout.
func TestADialOfAnotherClockIsNotTheCause(t *testing.T) {
	var d dialErrors
	fails := func(*testing.T) {
		began := time.Now().Add(-1)
		require.NoError(t, d.latest("a", began))
		time.Sleep(time.Microsecond)
		d.record("a", errors.New("refused"))
		require.Error(t, d.latest("a", began))
	}
	fails(t)
	synctest.Test(t, fails)
	synctest.Test(t, fails)
}
