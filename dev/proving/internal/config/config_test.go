package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

const goodFile = `
title: a test
service: {servers: 4, time: constant 20ms, queue: 8, error_rate: 2%}
load:
  - {rate: 30/1m, timeout: 250ms, processes: 2, surge: [{from: 5s, to: 6s, times: 3}]}
  - {users: 3, think: 1s, timeout: 1s, hurried_share: 0.25, hurried: 10ms, suspended: {from: 1s, to: 2s}}
faults:
  - {from: 20s, to: 30s, capacity: 0}
  - {from: 10s, to: 25s, capacity: 25%, FailTime: 2ms}
guards:
  - name: all
    rate: 100/s
    burst: 5
    max_wait: 20ms
    breaker: {failure_rate: off, consecutive_failures: 3, cooldown: 2s, latency: true, slow_call: 100ms}
  - name: throttled
    throttle: {k: 1.5, count_refused: true}
  - name: both
    breaker:
    throttle: {}
beside: [gobreaker, go-zero]
seeds: 3
seed: 7
`

func TestAFileBecomesAWorldAndGuards(t *testing.T) {
	c, err := config.Read("a.yaml", strings.NewReader(goodFile))
	require.NoError(t, err)
	require.Equal(t, "a test", c.Title)
	require.Equal(t, [2]uint64{3, 7}, [2]uint64{c.Seeds, c.Seed})

	w := c.World
	require.Equal(t, 20*time.Millisecond, w.Service.Time.At(0.3))
	w.Service.Time = sim.Distribution{}
	require.Equal(t, sim.World{
		Service: sim.Service{Servers: 4, Queue: 8, ErrorRate: 0.02},
		Faults: []sim.Fault{
			{Span: sim.Span{From: 20 * time.Second, To: 30 * time.Second}, Capacity: sim.NoCapacity},
			{Span: sim.Span{From: 10 * time.Second, To: 25 * time.Second}, Capacity: 0.25, FailTime: 2 * time.Millisecond},
		},
		Clients: []sim.Client{
			{
				Rate: 0.5, Timeout: 250 * time.Millisecond, Processes: 2,
				Surge: []sim.Surge{{Span: sim.Span{From: 5 * time.Second, To: 6 * time.Second}, Times: 3}},
			},
			{
				Users: 3, Think: time.Second, Timeout: time.Second, HurriedShare: 0.25, Hurried: 10 * time.Millisecond,
				Suspended: sim.Span{From: time.Second, To: 2 * time.Second},
			},
		},
		For: time.Minute, Warmup: 10 * time.Second,
		Trouble: sim.Span{From: 10 * time.Second, To: 30 * time.Second},
	}, w)

	var names []string
	for _, m := range c.Guards {
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"none", "all", "throttled", "both", "gobreaker", "go-zero", "oracle"}, names)
}

// downWorld is a world for tests of the guard "tried".
func downWorld(guard string) string {
	return "service: {servers: 100, time: constant 1ms, queue: 8}\n" +
		"load: [{rate: 50/s, timeout: 1s}]\nfaults: [{from: 20s, to: 50s, down: true}]\nguards:\n  - " + guard
}

// Each guard of a file shows in a total outage what its fields say.
func TestTheFieldsOfAGuardHaveAnEffect(t *testing.T) {
	for guard, sent := range map[string][2]float64{ // the least and the most share that is sent
		"{name: tried}": {0.03, 0.10},
		"{name: tried, breaker: {failure_rate: off, consecutive_failures: 3, cooldown: 10s}}":           {0.002, 0.02},
		"{name: tried, breaker: {force: disabled}}":                                                     {1, 1},
		"{name: tried, rate: 5/s, burst: 1, breaker: {force: disabled}}":                                {0.08, 0.11},
		"{name: tried, throttle: {}}":                                                                   {0.20, 0.60},
		"{name: tried, breaker: {force: disabled}, throttle: {max_refusal: 0.01}}":                      {0.95, 1},
		"{name: tried, breaker: {force: disabled}, throttle: {}}":                                       {0.20, 0.60},
		"{name: tried, rate: 5/s, burst: 1, breaker: {force: disabled}, throttle: {max_refusal: 0.01}}": {0.08, 0.11},
		"{name: tried, breaker: {}, throttle: {max_refusal: 0.01}}":                                     {0.03, 0.10},
	} {
		c, err := config.Read("a.yaml", strings.NewReader(downWorld(guard)))
		require.NoError(t, err, guard)
		require.Equal(t, "tried", c.Guards[1].Name)
		f := sim.Run(c.World, c.Guards[1], 1)
		share := float64(f.SentMeanwhile) / float64(f.OfferedMeanwhile)
		require.GreaterOrEqual(t, share, sent[0], guard)
		require.LessOrEqual(t, share, sent[1], guard)
	}
}

func TestTimesOfTheServiceAreDistributions(t *testing.T) {
	for text, want := range map[string]sim.Distribution{
		"50ms":                   sim.Exponential(50 * time.Millisecond),
		"exponential 50ms":       sim.Exponential(50 * time.Millisecond),
		"lognormal 50ms 1.5":     sim.Lognormal(50*time.Millisecond, 1.5),
		"bimodal 5ms 200ms 10%":  sim.Bimodal(5*time.Millisecond, 200*time.Millisecond, 0.1),
		"bimodal 5ms 200ms 0.10": sim.Bimodal(5*time.Millisecond, 200*time.Millisecond, 0.1),
		"pareto 5ms 1.5":         sim.Pareto(5*time.Millisecond, 1.5),
		"90% 5ms + 0.1 lognormal 2s 0.5": sim.Mixture(
			sim.Part{Share: 0.9, Distribution: sim.Exponential(5 * time.Millisecond)},
			sim.Part{Share: 0.1, Distribution: sim.Lognormal(2*time.Second, 0.5)},
		),
	} {
		c, err := config.Read("a.yaml", strings.NewReader(strings.Replace(goodFile, "constant 20ms", text, 1)))
		require.NoError(t, err, text)
		require.Equal(t, want.Text, c.World.Service.Time.Text)
		for _, u := range []float64{0, 0.05, 0.5, 0.99} {
			require.Equal(t, want.At(u), c.World.Service.Time.At(u), text)
		}
	}
}

func TestAFaultyMixtureIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"90% 5ms + 20% 2s":  "has shares that add up to 1.1, must be 1",
		"90% 5ms + 10%":     "must be like",
		"5ms + 50% 2s":      "must be like",
		"90% 5ms + 10% 2m2": "must be like",
		"pareto 5ms 0.5":    "must be like",
	} {
		_, err := config.Read("a.yaml", strings.NewReader(strings.Replace(goodFile, "constant 20ms", text, 1)))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "a.yaml:3: service.time", text)
	}
}
