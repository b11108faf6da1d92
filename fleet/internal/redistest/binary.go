package redistest

import (
	"os"
	"os/exec"
)

// Variable is the environment variable that names the program to test against.
const Variable = "WEIR_REDIS_SERVER"

// binary returns the program to start.
func binary(t TB) string {
	t.Helper()
	names := []string{"redis-server", "valkey-server", "/usr/bin/redis-server"}
	if name := os.Getenv(Variable); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("Redis is needed for this test, and there is no %q: install Debian's package redis-server, "+
		"or name the program in %s", names, Variable)
	return ""
}
