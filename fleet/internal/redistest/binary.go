package redistest

import (
	"os"

	"github.com/weir-go/weir/internal/testenv"
)

// Variable is the environment variable that names the program to test against.
const Variable = "WEIR_REDIS_SERVER"

// binary returns the path of the program to start.
func binary(t TB) string {
	t.Helper()
	return testenv.Program(t, programs()...)
}

// programs returns the programs to try, in order. Without any of them the test is skipped, or fails
// in CI.
func programs() []string {
	if name := os.Getenv(Variable); name != "" {
		return []string{name}
	}
	return []string{"redis-server", "valkey-server", "/usr/bin/redis-server"}
}
