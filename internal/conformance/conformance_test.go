package conformance_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const traceSuffix = ".jsonl.gz"

// replayers holds the replayer for each file that weir is compared with.
var replayers = map[string]replayer{
	"doc-fixed004":     fixedCounterReplayer,
	"doc-funnel":       funnelReplayer,
	"doc-handmade003":  handmadeReplayer,
	"doc-leakybucket":  leakyBucketReplayer,
	"doc-lua004":       luaReplayer,
	"doc-movingwindow": movingWindowReplayer,
	"doc-zset002":      zsetReplayer,
	"gobreaker":        gobreakerReplayer,
	"guava":            guavaReplayer,
	"redis-cell":       redisCellReplayer,
	"resilience4j":     resilience4jReplayer,
	"xtime-rate":       xtimeRateReplayer,
	"xtime-rate-wait":  xtimeWaitReplayer,
}

// replayedByFleet is the reason why the limits of a fleet are not compared here: they need a Redis,
// and the tests of their module replay them.
const replayedByFleet = "replayed by the module fleet, "

// noReplayer says why weir is not compared with a file.
var noReplayer = map[string]string{
	"doc-funnel-java":   "like doc-funnel, but each credit drops its fraction, and a clock that goes back fills the funnel: not implemented",
	"doc-tokenbucket":   "it drops the remainder at each grant, and so allows one request per second at any rate: nothing in weir does that",
	"redis-cell-module": replayedByFleet + "CL.THROTTLE by Redis",
	"redisson":          replayedByFleet + "RRateLimiter on Redis",
	"redisson-3.17.5":   "an older RRateLimiter, with the faults of redisson and more",
}

func TestWeirEqualsTheReferences(t *testing.T) {
	folder := cmp.Or(os.Getenv("WEIR_TRACES"), "testdata")
	files, err := filepath.Glob(filepath.Join(folder, "*"+traceSuffix))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), traceSuffix)
		t.Run(name, func(t *testing.T) {
			sequences := read(t, file)
			p, ok := replayers[name]
			if !ok {
				require.Contains(t, noReplayer, name, "unknown file")
				fmt.Fprintf(t.Output(), "%s: no replayer for its %d sequences: %s\n", name, len(sequences), noReplayer[name])
				return
			}
			var s summary
			for _, seq := range sequences {
				s.add(replayOne(t, p, seq))
			}
			fmt.Fprintln(t.Output(), s.String(name))
			s.requireReasons(t)
			require.Empty(t, s.mismatches, "mismatches")
		})
	}
}

// TestMostOfResilience4jReplays requires that four in five of the sequences without overlapping
// calls replay completely.
func TestMostOfResilience4jReplays(t *testing.T) {
	replayed, all := 0, 0
	for _, seq := range read(t, "testdata/resilience4j"+traceSuffix) {
		var c r4jConfig
		require.NoError(t, json.Unmarshal(seq.Config, &c))
		if c.Discipline != "sequential" && c.Discipline != "scripted" {
			continue
		}
		all++
		if r := replayOne(t, resilience4jReplayer, seq); r.left == "" && len(r.mismatches) == 0 {
			replayed++
		}
	}
	fmt.Fprintf(t.Output(), "resilience4j: %d of %d sequential and scripted sequences replay completely\n", replayed, all)
	require.GreaterOrEqual(t, replayed*10, all*8)
}

func replayOne(t *testing.T, p replayer, seq sequence) *run {
	t.Helper()
	r := newRun(t, seq)
	p.replay(r)
	return r
}

// summary adds up the results of the sequences of one file.
type summary struct {
	sequences, steps int
	left, partly     map[divergence]int
	mismatches       []string
}

func (s *summary) add(r *run) {
	if s.sequences == 0 {
		s.left, s.partly = map[divergence]int{}, map[divergence]int{}
	}
	s.sequences++
	s.steps += len(r.steps)
	if r.left != "" {
		s.left[r.left]++
	}
	for d, steps := range r.partly {
		s.partly[d] += len(steps)
	}
	s.mismatches = append(s.mismatches, r.mismatches...)
}

// requireReasons checks that every divergence is in the table.
func (s *summary) requireReasons(t *testing.T) {
	t.Helper()
	for _, counts := range []map[divergence]int{s.left, s.partly} {
		for d := range counts {
			require.NotEmpty(t, divergences[d], d)
		}
	}
}

func (s *summary) String(name string) string {
	left, reasons := describeCounts(s.left)
	text := fmt.Sprintf("%s: replayed %d of %d sequences, %d steps, skipped %d%s, mismatches %d",
		name, s.sequences-left, s.sequences, s.steps, left, reasons, len(s.mismatches))
	if steps, reasons := describeCounts(s.partly); steps > 0 {
		text += fmt.Sprintf("\n%s: of these steps %d compared in part%s", name, steps, reasons)
	}
	return text
}

// describeCounts returns the sum of counts by reason, and the reasons as text.
func describeCounts(counts map[divergence]int) (total int, reasons string) {
	var parts []string
	for _, d := range slices.Sorted(maps.Keys(counts)) {
		total += counts[d]
		parts = append(parts, fmt.Sprintf("%s: %d", d, counts[d]))
	}
	if total == 0 {
		return 0, ""
	}
	return total, " (" + strings.Join(parts, ", ") + ")"
}

func read(t *testing.T, file string) []sequence {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	var sequences []sequence
	for line := range bytes.Lines(text) {
		var s sequence
		require.NoError(t, json.Unmarshal(line, &s))
		sequences = append(sequences, s)
	}
	return sequences
}
