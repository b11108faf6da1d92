package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func TestTheTableHasAColumnPerDesign(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-first", "1", "-seeds", "1", "-only", "^(return|steady-probes)$"}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	for _, line := range lines {
		require.Equal(t, len(designs())+2, strings.Count(line, "|"), line)
	}
	require.Contains(t, lines[2], "| return: good meanwhile % / failed % |")
	require.Contains(t, lines[3], "| steady-probes: false refusals per million | 0 | 0 | 0 |")
	require.NotContains(t, out.String(), "–")

	require.ErrorContains(t, run([]string{"-seeds", "0"}, &out), "-seeds must be at least 1")
	require.ErrorContains(t, run([]string{"-of", "colors"}, &out), `-of is "colors", must be bounds or cooldowns`)
	require.ErrorContains(t, run([]string{"-only", "("}, &out), "missing closing )")
	require.ErrorContains(t, run([]string{"-guards", "("}, &out), "missing closing )")
}

func TestBreakersWithSeveralCooldowns(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-of", "cooldowns", "-seeds", "1", "-only", "^outage$", "-guards", "^(none|5s|1s)$"}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "| scenario | none | 5s | 1s |", lines[0])
	require.Contains(t, lines[2], "| outage: sent meanwhile % / good after % | 100.0 / 100.0 |")
}

// callers returns the designs that are not in package sim.
func callers() (all []sim.Maker) {
	for _, m := range designs() {
		if m.Name != "none" && m.Name != "informed" {
			all = append(all, m)
		}
	}
	return all
}

func TestEveryDesignPassesResultsOn(t *testing.T) {
	errService := errors.New("service: down")
	for _, m := range callers() {
		synctest.Test(t, func(t *testing.T) {
			g := m.New(sim.Setting{})
			for range 300 {
				require.NoError(t, g.Call(t.Context(), func(context.Context) error { return nil }), m.Name)
			}
			err := g.Call(t.Context(), func(context.Context) error { return errService })
			require.ErrorIs(t, err, errService, m.Name)
			_, refused := g.Refusal(err)
			require.False(t, refused, m.Name)
			_, refused = g.Refusal(errNoSlot)
			require.True(t, refused, m.Name)
		})
	}
}

// refusals makes calls with the given latency, rate and total time, and returns how many were
// refused.
func refusals(b adaptiveBound, latency, every, long time.Duration, failed bool) (refused int) {
	const deadline = time.Second
	call := boundedCaller(b)
	results := make(chan error)
	n := int(long / every)
	for range n {
		go func() {
			results <- call(context.Background(), func(context.Context) error {
				time.Sleep(min(latency, deadline))
				if failed {
					return context.DeadlineExceeded
				}
				return nil
			})
		}()
		time.Sleep(every)
		select {
		case err := <-results:
			n--
			if errors.Is(err, errNoSlot) {
				refused++
			}
		default:
		}
	}
	for range n {
		if errors.Is(<-results, errNoSlot) {
			refused++
		}
	}
	return refused
}

func TestOwnDesignsFollowTheLatency(t *testing.T) {
	for name, b := range map[string]adaptiveBound{"AIMD": newAIMD(), "gradient": newGradient()} {
		synctest.Test(t, func(t *testing.T) {
			require.Zero(t, refusals(b, 50*time.Millisecond, 10*time.Millisecond, 20*time.Second, false), name)
			require.Zero(t, refusals(b, time.Millisecond, 10*time.Millisecond, time.Second, true), "%s: early failures", name)
			require.Greater(t, refusals(b, time.Second, 10*time.Millisecond, 20*time.Second, true), 1000, "%s: late failures", name)
		})
	}
}
