package report

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Machine is where and when the figures were measured.
type Machine struct {
	CPU   string
	Cores int
	Go    string
	Date  time.Time
}

// ThisMachine describes the machine that it runs on.
func ThisMachine() Machine {
	return Machine{CPU: processor(), Cores: runtime.NumCPU(), Go: runtime.Version(), Date: time.Now().UTC()}
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, on %s", m.CPU, m.Cores, runtime.GOOS, runtime.GOARCH, m.Go, m.Date.Format("2 January 2006, 15:04 UTC"))
}

// processor is the name that Linux has for it.
func processor() string {
	about, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(about)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// Peers lists the libraries that are compared, with the versions that the program was built with.
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

// isPeer says whether ours is compared with the module.
func isPeer(path string) bool {
	switch path {
	case "github.com/sony/gobreaker/v2", "github.com/failsafe-go/failsafe-go", "github.com/zeromicro/go-zero", "github.com/go-kratos/aegis",
		"github.com/afex/hystrix-go", "golang.org/x/time", "go.uber.org/ratelimit", "github.com/juju/ratelimit",
		"github.com/throttled/throttled/v2", "github.com/go-redis/redis_rate/v10", "github.com/sethvargo/go-limiter", "github.com/ulule/limiter/v3":
		return true
	}
	return false
}
