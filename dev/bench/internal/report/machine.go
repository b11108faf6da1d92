package report

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Machine describes where and when the figures were measured.
type Machine struct {
	CPU   string
	Cores int
	Go    string
	Date  time.Time
}

// ThisMachine describes the current machine.
func ThisMachine() Machine {
	return Machine{CPU: processor(), Cores: runtime.NumCPU(), Go: runtime.Version(), Date: time.Now().UTC()}
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, on %s", m.CPU, m.Cores, runtime.GOOS, runtime.GOARCH, m.Go, m.Date.Format("2 January 2006, 15:04 UTC"))
}

// processor returns the name of the processor on Linux.
func processor() string {
	about, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(about)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// Peers returns the compared libraries with their versions.
func Peers() (versions []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, dep := range info.Deps {
		if isPeer(dep.Path) {
			versions = append(versions, dep.Path+" "+dep.Version)
		}
	}
	return versions
}

// isPeer reports whether weir is compared with the module.
func isPeer(path string) bool {
	switch path {
	case "github.com/sony/gobreaker/v2", "github.com/failsafe-go/failsafe-go", "github.com/zeromicro/go-zero", "github.com/hashicorp/golang-lru/v2",
		"golang.org/x/time", "go.uber.org/ratelimit", "github.com/throttled/throttled/v2", "github.com/go-redis/redis_rate/v10",
		"github.com/sethvargo/go-limiter", "github.com/ulule/limiter/v3":
		return true
	}
	return false
}
