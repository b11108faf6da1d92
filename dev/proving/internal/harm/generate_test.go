package harm_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/harm"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func world(i int) sim.World { return (&harm.Genes{Seed: 99<<20 + uint64(i)}).World() }

func TestEveryWorldIsValidAndAffordable(t *testing.T) {
	for i := range 3000 {
		w := world(i)
		require.NoError(t, w.Validate(), harm.Describe(w))
		c := w.Clients[0]
		calls := c.Rate * w.For.Seconds()
		require.GreaterOrEqual(t, calls, 6000.0, harm.Describe(w))
		for _, s := range c.Surge {
			calls += max(s.Times-1, 0) * c.Rate * (s.To - s.From).Seconds()
		}
		require.LessOrEqual(t, calls, 150_000.0, harm.Describe(w))
		require.Equal(t, harm.Describe(w), harm.Describe(world(i)), "the same seed gives the same world")
	}
}

// A world that is written and read again is the same, and gives the same figures.
func TestAFileOfAWorldIsTheWorld(t *testing.T) {
	for i := range 300 {
		w := world(i)
		var file bytes.Buffer
		require.NoError(t, harm.Write(&file, harm.Found{Name: "a: b", World: w, Seed: 7}))
		text := file.String()
		c, err := config.Read("a.yaml", strings.NewReader(text))
		require.NoError(t, err, text)
		require.Equal(t, "a: b", c.Title)
		require.Equal(t, uint64(7), c.Seed)
		var names []string
		for _, m := range c.Guards {
			names = append(names, m.Name)
		}
		require.Equal(t, []string{"none", "weir.Config{}", "recommended", "gobreaker, by rate", "oracle"}, names)
		if i%60 == 0 && w.Clients[0].Rate < 1000 {
			want, _ := sim.Trace(w, sim.None(), 1)
			got, _ := sim.Trace(c.World, sim.None(), 1)
			require.Equal(t, want, got, text)
		}
		require.Equal(t, plain(w), plain(c.World), text)
	}
}

// plain returns a world in a form that can be compared.
func plain(w sim.World) string {
	times := func(d sim.Distribution) string {
		if d.At == nil {
			return "none"
		}
		return fmt.Sprint(d.At(0.1), d.At(0.5), d.At(0.99), d.At(0.9999))
	}
	text := times(w.Service.Time) + times(w.Clients[0].Stream)
	w.Service.Time, w.Clients[0].Stream = sim.Distribution{}, sim.Distribution{}
	return text + fmt.Sprintf("%+v", w)
}

// Each kind of world that the generator can draw is drawn, and each range is covered.
func TestTheRangesAreCovered(t *testing.T) {
	const n = 4000
	seen := map[string]int{}
	for i := range n {
		for _, f := range features(world(i)) {
			seen[f]++
		}
	}
	for feature, least := range map[string]float64{
		"rate below 0.1/s": 0.08, "rate above 5000/s": 0.03, "rate above 15000/s": 0.005, "longer than a day": 0.05,
		"constant": 0.05, "exponential": 0.1, "lognormal": 0.15, "pareto": 0.05, "mixture of 2": 0.2, "mixture of 3": 0.1,
		"kinds 1000 times apart": 0.05, "streams": 0.08, "call above 11 s": 0.04, "call below 2 ms": 0.05,
		"elastic": 0.3, "short queue": 0.05, "long queue": 0.1, "abandoned dropped": 0.3, "overload": 0.02,
		"8 hosts": 0.03, "in turn": 0.15, "no deadline": 0.12, "cancels": 0.06, "mixed deadlines": 0.2, "hopeless": 0.05,
		"80 % hurried": 0.02, "retries": 0.2, "budget": 0.05, "processes": 0.08, "steady": 0.4, "ramp": 0.05, "night": 0.05,
		"no fault": 0.1, "3 faults": 0.08, "starts into trouble": 0.05, "one host": 0.15, "capacity": 0.05, "fast errors": 0.15,
		"slow errors": 0.05, "lost": 0.08, "slower": 0.15, "some slower": 0.05, "pause": 0.05, "repeated": 0.1,
		"slow leak": 0.05, "error leak": 0.04, "down": 0.04, "calm end": 0.6,
	} {
		require.GreaterOrEqual(t, float64(seen[feature])/n, least, feature)
	}
}

// features returns what is special about a world.
func features(w sim.World) (all []string) {
	c, s := w.Clients[0], w.Service
	add := func(name string, ok bool) {
		if ok {
			all = append(all, name)
		}
	}
	add("rate below 0.1/s", c.Rate < 0.1)
	add("rate above 5000/s", c.Rate > 5000)
	add("rate above 15000/s", c.Rate > 15000)
	add("longer than a day", w.For > 24*time.Hour)
	kinds := strings.Count(s.Time.Text, "+") + 1
	for _, kind := range []string{"constant", "exponential", "lognormal", "pareto"} {
		add(kind, kinds == 1 && strings.HasPrefix(s.Time.Text, kind))
	}
	add(fmt.Sprintf("mixture of %d", kinds), true)
	add("kinds 1000 times apart", kinds > 1 && s.Time.At(0.9999) > 1000*s.Time.At(0.2))
	add("streams", c.StreamShare > 0)
	add("call above 11 s", s.Time.At(0.5) > 11*time.Second)
	add("call below 2 ms", s.Time.At(0.5) < 2*time.Millisecond)
	add("elastic", s.Servers == 1_000_000)
	add("short queue", s.Servers < 1_000_000 && s.Queue < s.Servers/2)
	add("long queue", s.Queue > 10*s.Servers)
	add("abandoned dropped", s.DropsAbandoned)
	add("8 hosts", s.Hosts == 8)
	add("in turn", s.InTurn)
	add("overload", float64(s.Servers*max(s.Hosts, 1))/meanOf(s.Time).Seconds() < c.Rate)
	add("no deadline", c.Timeout == 0)
	add("cancels", c.Cancels)
	add("mixed deadlines", c.HurriedShare > 0)
	add("hopeless", c.HurriedShare > 0 && c.Hurried < s.Time.At(0.5))
	add("80 % hurried", c.HurriedShare > 0.8)
	add("retries", c.Retries > 0)
	add("budget", c.Budget > 0)
	add("processes", c.Processes > 1)
	add("steady", len(c.Surge) == 0)
	add("ramp", len(c.Surge) == 8)
	add("night", len(c.Surge) == 1 && c.Surge[0].Times <= 0.1)
	add("no fault", len(w.Faults) == 0)
	add("3 faults", len(w.Faults) >= 3)
	calm := true
	for _, f := range w.Faults {
		add("starts into trouble", f.From == 0 && f.To < w.For)
		add("one host", f.Host > 0)
		add("capacity", f.Capacity > 0)
		add("fast errors", f.ErrorRate > 0 && f.FailTime > 0 && f.FailTime < s.Time.At(0.5)/2)
		add("slow errors", f.ErrorRate > 0 && f.FailTime > 2*s.Time.At(0.5))
		add("lost", f.Lost > 0)
		add("slower", f.Slower >= 2)
		add("some slower", f.SlowShare > 0)
		add("pause", f.Capacity == sim.NoCapacity && f.To-f.From < 5*time.Second)
		add("repeated", f.Period > 0)
		add("slow leak", f.Grows && f.Slower > 0)
		add("error leak", f.Grows && f.ErrorRate > 0)
		add("down", f.Down)
		calm = calm && (f.To < w.For*4/5 || f.From == 0 && f.To == w.For)
	}
	add("calm end", calm)
	return unique(all)
}

func unique(names []string) (all []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			all = append(all, name)
		}
		seen[name] = true
	}
	return all
}

func meanOf(d sim.Distribution) time.Duration {
	var sum time.Duration
	for i := range 1000 {
		sum += d.At((float64(i)+0.5)/1000) / 1000
	}
	return sum
}
