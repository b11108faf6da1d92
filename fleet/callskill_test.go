package fleet_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

// victimVariable is an environment variable with the address of a server. It turns the test program
// into a node that is to be killed.
const victimVariable = "WEIR_TEST_VICTIM"

func TestAProcessThatIsKilledLosesTwoFlushesAtMost(t *testing.T) {
	if addr := os.Getenv(victimVariable); addr != "" {
		countUntilKilled(t, addr)
	}
	s := redistest.Start(t)
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), victimVariable+"="+s.Addr())
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	counted, flushes := int64(0), int64(0)
	// the calls counted when the process first printed this number of flushes
	atFlush := map[int64]int64{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "counted %d, %d flushes", &counted, &flushes); err != nil {
			t.Log(lines.Text())
			continue
		}
		if _, known := atFlush[flushes]; !known {
			atFlush[flushes] = counted
		}
		if counted == 300 {
			require.NoError(t, process.Process.Kill())
		}
	}
	require.Error(t, process.Wait(), "the process was killed")

	successor := join(t, linkTo(t, s.Options()), longWindow)
	requireSoon(t, func() bool { return successor.Flushes() > 0 })
	kept := successor.Counts().Failures
	t.Logf("%d calls in %d flushes, %d lost", counted, flushes, counted-kept)
	require.LessOrEqual(t, kept, counted+1, "the last call may not have been printed")
	// The calls of a flush are captured up to a period before it is sent, but after the flush
	// before it has begun. So the last flush has all that was counted when the flush before that
	// one had ended.
	require.GreaterOrEqual(t, kept, atFlush[flushes-2], "all that was counted two flushes before had arrived")
}

// countUntilKilled counts one call per millisecond and prints each.
func countUntilKilled(t *testing.T, addr string) {
	calls := newCalls(linkTo(t, &redis.Options{Addr: addr}), t.Name(), longWindow)
	go calls.Run(t.Context())
	tick := time.NewTicker(time.Millisecond)
	for n := 1; ; n++ {
		<-tick.C
		calls.Record(window.Failure, 0)
		fmt.Printf("counted %d, %d flushes\n", n, calls.Flushes())
	}
}
