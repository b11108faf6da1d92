package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// Redis 6 wraps errors in scripts.
func TestAMissingPermissionOfAScriptIsNotAServerFailure(t *testing.T) {
	l := &Link{name: "rights"}
	for _, text := range []string{
		"NOPERM this user has no permissions to run the 'zadd' command",
		"ERR The user executing the script can't run this command or subcommand",
		"ACL failure in script: User limits has no permissions to run the 'zadd' command",
		"ERR Error running script (call to f_1234): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
		"ERR Error running script (call to f_1234): @user_script:67: @user_script: 67: -NOPERM this user has no permissions",
	} {
		e := l.storeError(reply(text))
		require.Equal(t, faultDenied, e.Fault, text)
		require.Equal(t, breaker.Success, breakerOutcome(e), text)
	}
}
