package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// A server that could not say during Connect whether it has redis-cell is asked again.
func TestTheModuleIsFoundWhenTheServerAnswersAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"no answer": "", "loading": "-LOADING Redis is loading the dataset in memory\r\n",
	} {
		f := newFakeServer(t, map[string]string{"command": answer, "cl.throttle": integerReply(0, 16, 15, -1, 2), "eval": integerReply(1), "evalsha": integerReply(0, 0, 0, 2, 0)})
		l := connectTo(t, f.client(), fleet.LinkConfig{Timeout: 200 * ms})
		f.setReply("command", "*1\r\n*6\r\n$11\r\ncl.throttle\r\n:-1\r\n*0\r\n:1\r\n:1\r\n:1\r\n")
		f.commands()
		throttle := newLimiter(l, "cell", seedLimit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
		// finds the module; the script still decides
		_, err := rediscell.Throttle(t.Context(), throttle, "user:42", 1)
		require.NoError(t, err, name)
		reply, err := rediscell.Throttle(t.Context(), throttle, "user:42", 1)
		require.NoError(t, err, name)
		require.Equal(t, rediscell.Reply{Limit: 16, Remaining: 15, RetryAfter: -1, ResetAfter: 2}, reply, name)
		require.Contains(t, f.commands(), "cl.throttle weir:cell:{user:42} 15 30 60 1", name)
	}
}

// If a server refuses to say which commands it has, the script decides, and the server is not asked
// again.
func TestAServerThatHidesItsModulesGetsTheScript(t *testing.T) {
	for _, answer := range []string{
		"-NOPERM this user has no permissions to run the 'command|info' command\r\n", "-ERR unknown command 'command'\r\n", "*0\r\n",
	} {
		f := newFakeServer(t, map[string]string{"command": answer, "eval": integerReply(1), "evalsha": integerReply(0, 0, 0, 2, 0)})
		throttle := newLimiter(connectTo(t, f.client(), fleet.LinkConfig{Timeout: longTimeout}), "cell", seedLimit, errorOnOutage)
		f.commands()
		for range 2 {
			_, err := rediscell.Throttle(t.Context(), throttle, "user:42", 1)
			require.NoError(t, err, answer)
			require.Len(t, f.commands(), 1, answer)
		}
	}
}
