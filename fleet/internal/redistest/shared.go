package redistest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weir-go/weir/internal/testenv"
)

// TB has the methods of a testing.TB that servers need. A Package implements it too.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}

// Package is a TB for servers that all tests of a package share. Call its Run in
// TestMain:
//
//	var shared redistest.Package
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	var cluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })
//
// If a server does not start, the first test that uses it panics.
type Package struct {
	mu       sync.Mutex
	cleanups []func()
}

// Run runs the tests and then the cleanups, and returns the exit status. The client
// library does not log to standard error meanwhile, because tests cause failures on purpose.
func (p *Package) Run(m *testing.M) (status int) {
	flag.Parse()
	if status, skip := testenv.SkipAll(os.Stdout, programs()...); skip {
		return status
	}
	logging.Disable()
	defer p.clean()
	return m.Run()
}

// Helper does nothing.
func (p *Package) Helper() {}

// Logf writes to standard error.
func (p *Package) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatal panics.
func (p *Package) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf panics.
func (p *Package) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Skip panics: Run starts no test if the server is missing.
func (p *Package) Skip(args ...any) { panic(fmt.Sprint(args...)) }

// Failed returns false.
func (p *Package) Failed() bool { return false }

// Cleanup calls f after all tests.
func (p *Package) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

// TempDir returns a new folder, which is deleted after all tests.
func (p *Package) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		panic(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// clean calls the functions passed to Cleanup, the last first.
func (p *Package) clean() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, clean := range slices.Backward(p.cleanups) {
		clean()
	}
}
