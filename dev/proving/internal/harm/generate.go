package harm

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// World returns the world of the genes.
func (g *Genes) World() sim.World {
	g.used = map[string]float64{}
	d := draft{Genes: g}
	d.drawRate()
	d.drawTimes()
	d.drawBackend()
	d.drawDeadlines()
	d.drawCallers()
	d.drawLoad()
	d.drawFaults()
	d.world.Clients = []sim.Client{d.client}
	for i, f := range d.world.Faults {
		if i == 0 {
			d.world.Trouble = f.Span
		}
		d.world.Trouble = sim.Span{From: min(d.world.Trouble.From, f.From), To: max(d.world.Trouble.To, f.To)}
	}
	return d.world
}

// draft is a world that is being made.
type draft struct {
	*Genes
	world  sim.World
	calm   time.Duration // nothing happens any more after it
	more   float64       // calls of surges
	client sim.Client
	mean   time.Duration // of a call, streams apart
	median time.Duration
	p90    time.Duration
}

const (
	fewestCalls = 6_700 // three seeds have 20,000
	usualCalls  = 15_000
	mostCalls   = 30_000
	elastic     = 1_000_000 // servers, which is more than there are ever calls
)

// drawRate draws the rate, and how long the world lasts.
func (d *draft) drawRate() {
	d.client.Rate = d.log("rate", 0.02, 5000)
	if d.chance("busy", 0.06) {
		d.client.Rate = d.log("rate", 5000, 20000)
	}
	long := d.log("calls", fewestCalls, usualCalls) / d.client.Rate
	long = max(long, min(120, mostCalls/d.client.Rate), 4)
	d.world.For = roundedTime(seconds(long))
	d.calm = roundedTime(seconds(long - max(0.25*long, min(60, 0.45*long))))
}

// share returns a part of the time before nothing happens any more.
func (d *draft) share(x float64) time.Duration {
	return roundedTime(time.Duration(x * float64(d.calm)))
}

// drawTimes draws how long calls take.
func (d *draft) drawTimes() {
	most := max(min(30, 3000/d.client.Rate), 0.001)
	base := d.time("mean", time.Millisecond/2, seconds(most))
	t := d.distribution("kind", base)
	if kinds := d.choice("kinds", 0.55, 0.3, 0.15); kinds > 0 {
		t = d.mixture(base, kinds)
	}
	d.world.Service.Time = t
	const n = 2000
	var sum float64
	for i := range n {
		sum += float64(t.At((float64(i) + 0.5) / n))
	}
	d.mean = time.Duration(sum / n)
	d.median, d.p90 = quantile(t, 0.5), quantile(t, 0.9)
	if !d.chance("streams", 0.12) {
		return
	}
	c := &d.client
	long := d.time("stream", 5*time.Second, 5*time.Minute)
	c.Stream = sim.Exponential(long)
	if d.chance("equal streams", 0.3) {
		c.Stream = sim.Constant(long)
	}
	c.StreamShare = min(d.log("stream share", 0.001, 0.5), rounded(3000/c.Rate/long.Seconds()))
}

// distribution draws the distribution of the times of one kind of calls.
func (d *draft) distribution(name string, mean time.Duration) sim.Distribution {
	switch d.choice(name, 0.15, 0.3, 0.4, 0.15) {
	case 0:
		return sim.Constant(mean)
	case 1:
		return sim.Exponential(mean)
	case 2:
		return sim.Lognormal(mean, d.between(name+" sigma", 0.1, 1.5))
	}
	exponent := d.between(name+" exponent", 1.1, 3)
	mean = min(mean, 3*time.Second) // the longest time is 1000 times the shortest
	return sim.Pareto(roundedTime(time.Duration(float64(mean)*(exponent-1)/exponent)), exponent)
}

// mixture draws up to two further kinds of calls, which take longer.
func (d *draft) mixture(base time.Duration, kinds int) sim.Distribution {
	parts := []sim.Part{{Distribution: d.distribution("kind", base)}}
	left := 1.0
	for i := range kinds {
		name := fmt.Sprintf("kind %d", i+2)
		share := min(d.log(name+" share", 0.002, 0.5), rounded(0.9*left))
		times := d.log(name+" times", 2, 1e4)
		most := min(120, 3000/d.client.Rate/share)
		mean := min(time.Duration(times*float64(base)), seconds(most))
		left -= share
		parts = append(parts, sim.Part{Share: share, Distribution: d.distribution(name, max(roundedTime(mean), base))})
	}
	parts[0].Share = math.Round(left*1e6) / 1e6
	return sim.Mixture(parts...)
}

// drawBackend draws the servers, the hosts and the queues.
func (d *draft) drawBackend() {
	s := &d.world.Service
	if d.chance("several hosts", 0.5) {
		s.Hosts = 2 + int(7*d.number("hosts"))
	}
	s.InTurn = s.Hosts > 1 && d.chance("in turn", 0.5)
	s.DropsAbandoned = d.chance("drops abandoned", 0.5)
	if d.chance("fails", 0.35) {
		s.ErrorRate = d.log("error rate", 0.001, 0.4)
	}
	if d.chance("says retry after", 0.12) {
		s.RetryAfter = d.time("retry after", 100*time.Millisecond, 30*time.Second)
	}
	if d.chance("elastic", 0.4) {
		s.Servers = elastic
		return
	}
	load := d.between("load", 0.1, 0.95)
	switch d.choice("load kind", 0.75, 0.12, 0.13) {
	case 1:
		load = d.between("load", 0.95, 1.5)
	case 2:
		load = d.log("load", 0.005, 0.1)
	}
	work := d.mean.Seconds() + d.client.StreamShare*meanOf(d.client.Stream).Seconds()
	s.Servers = max(int(math.Ceil(d.client.Rate*work/load/float64(max(s.Hosts, 1)))), 1)
	s.Queue = int(math.Ceil(float64(s.Servers) * d.log("queue", 0.1, 40)))
	if wait := float64(s.Queue) * work / float64(s.Servers); wait > 120 { // seconds
		s.Queue = int(120 * float64(s.Servers) / work)
	}
}

// drawDeadlines draws how long callers wait.
func (d *draft) drawDeadlines() {
	c := &d.client
	usual := max(d.p90, 5*time.Millisecond)
	patience := min(time.Duration(d.log("patience", 1.3, 200)*float64(usual)), 10*time.Minute)
	kind := d.choice("deadlines", 0.2, 0.5, 0.3)
	if kind > 0 {
		c.Timeout = roundedTime(patience)
		c.Cancels = d.chance("cancels", 0.15)
	}
	if kind == 2 {
		c.HurriedShare = d.between("hurried share", 0.02, 0.9)
		c.Hurried = max(d.time("hurried", max(d.median/10, 1), patience), time.Millisecond/2)
	}
}

// drawCallers draws the processes and their retries.
func (d *draft) drawCallers() {
	c := &d.client
	if d.chance("processes", 0.12) {
		c.Processes = d.count("how many processes", 2, 6)
	}
	if !d.chance("retries", 0.25) {
		return
	}
	c.Retries = d.count("how many retries", 1, 4)
	c.Backoff = d.time("backoff", 5*time.Millisecond, 5*time.Second)
	c.ObeysRetryAfter = d.chance("obeys", 0.5)
	if d.chance("budget", 0.4) {
		c.Budget = d.log("budget size", 0.02, 0.5)
	}
}

// drawLoad draws how the rate changes.
func (d *draft) drawLoad() {
	at := d.between("load from", 0.05, 0.7)
	long := d.log("load for", 0.02, 0.6)
	from, to := d.share(at), d.share(min(at+long, 1))
	switch d.choice("load shape", 0.55, 0.12, 0.11, 0.11, 0.11) {
	case 1: // a step, up or down
		d.surge(from, to, d.log("step", 0.1, 4))
	case 2: // a ramp
		const steps = 8
		peak := d.log("peak", 1.2, 4)
		for i := range steps {
			part := (to - from) / steps
			d.surge(from+time.Duration(i)*part, from+time.Duration(i+1)*part, rounded(1+(peak-1)*float64(i+1)/steps))
		}
	case 3: // a night
		d.surge(from, to, d.log("night", 0.003, 0.2))
	case 4: // bursts
		n := d.count("bursts", 1, 12)
		burst := d.time("burst", 50*time.Millisecond, 5*time.Second)
		times := d.log("burst times", 3, 20)
		for i := range n {
			part := (d.calm - from) / time.Duration(n)
			at := from + time.Duration(i)*part
			d.surge(at, at+min(burst, part/2), times)
		}
	}
}

// surge adds a surge, unless it would make the world too large.
func (d *draft) surge(from, to time.Duration, times float64) {
	from, to = roundedTime(from), roundedTime(to)
	more := d.client.Rate * (times - 1) * (to - from).Seconds()
	if from < to && d.more+more <= mostCalls {
		d.more += max(more, 0)
		d.client.Surge = append(d.client.Surge, sim.Surge{Span: sim.Span{From: from, To: to}, Times: times})
	}
}

// drawFaults draws what goes wrong.
func (d *draft) drawFaults() {
	if d.chance("fast errors", 0.12) {
		d.world.Faults = append(d.world.Faults, sim.Fault{
			Span:      sim.Span{To: d.world.For},
			ErrorRate: d.log("fast errors share", 0.005, 0.45),
			FailTime:  d.time("fast errors time", 100*time.Microsecond, max(d.median/4, time.Millisecond)),
		})
	}
	for i := range d.choice("faults", 0.2, 0.4, 0.2, 0.12, 0.08) {
		d.drawFault(fmt.Sprintf("fault %d ", i+1))
	}
}

func (d *draft) drawFault(name string) {
	var f sim.Fault
	f.From = d.share(d.between(name+"from", 0.05, 0.8))
	if d.chance(name+"at once", 0.1) {
		f.From = 0
	}
	least := min(max(1, 10/d.client.Rate), 0.1*d.calm.Seconds())
	f.To = min(f.From+d.time(name+"for", seconds(least), d.share(0.6)), d.calm)
	if d.chance(name+"stays", 0.08) {
		f.To = d.world.For
	}
	if d.world.Service.Hosts > 1 && d.chance(name+"one host", 0.6) {
		f.Host = 1 + int(d.number(name+"host")*float64(d.world.Service.Hosts))
	}
	d.drawEffect(name, &f)
	if f.From < f.To {
		d.world.Faults = append(d.world.Faults, f)
	}
}

// drawEffect draws what a fault does.
func (d *draft) drawEffect(name string, f *sim.Fault) {
	size := name + "size"
	switch d.choice(name+"kind", 0.12, 0.1, 0.07, 0.13, 0.22, 0.14, 0.07, 0.05, 0.05, 0.05) {
	case 0:
		f.Capacity = d.log(size, 0.05, 0.9)
	case 1:
		f.ErrorRate = d.between(size, 0.03, 1)
		f.FailTime = d.time(name+"time", 100*time.Microsecond, max(d.median, time.Millisecond))
	case 2: // slow errors
		f.ErrorRate = d.between(size, 0.03, 1)
		f.FailTime = d.time(name+"time", d.median, 20*d.p90)
	case 3:
		if d.client.Timeout == 0 { // nothing else would end a lost call
			d.client.Timeout = roundedTime(min(20*max(d.p90, 5*time.Millisecond), 10*time.Minute))
		}
		f.Lost = d.log(size, 0.02, 1)
	case 4:
		d.slower(name, f)
	case 5:
		d.pauses(name, f)
	case 6:
		f.Slower, f.Grows = d.log(size, 2, 100), true
	case 7:
		f.ErrorRate, f.Grows = d.between(size, 0.1, 1), true
	case 8:
		f.Down = true
	case 9:
		f.Capacity = sim.NoCapacity
	}
	if f.Capacity == 0 && d.chance(name+"repeats", 0.15) {
		d.repeat(name, f)
	}
}

// slower makes all calls or a part of them slower.
func (d *draft) slower(name string, f *sim.Fault) {
	f.Slower = d.log(name+"size", 2, 50)
	if d.chance(name+"some", 0.35) {
		f.SlowShare = d.log(name+"share", 0.02, 1)
	}
}

// pauses makes the service stop once or again and again.
func (d *draft) pauses(name string, f *sim.Fault) {
	f.Capacity = sim.NoCapacity
	pause := d.time(name+"size", 50*time.Millisecond, 5*time.Second)
	if d.chance(name+"once", 0.4) {
		f.To = min(f.From+pause, d.calm)
		return
	}
	f.Period = roundedTime(pause * time.Duration(2+d.count(name+"every", 1, 50)))
	f.Duty = rounded(float64(pause) / float64(f.Period))
	f.To = d.calm
}

// repeat makes a fault come and go.
func (d *draft) repeat(name string, f *sim.Fault) {
	f.Period = max(d.time(name+"period", 500*time.Millisecond, 2*time.Minute), 2*time.Millisecond)
	f.Duty = d.between(name+"duty", 0.05, 0.8)
}

func quantile(t sim.Distribution, p float64) time.Duration {
	const n = 2000
	times := make([]float64, n)
	for i := range n {
		times[i] = float64(t.At((float64(i) + 0.5) / n))
	}
	slices.Sort(times)
	return time.Duration(times[int(p*n)])
}

// meanOf returns the mean of the times of a stream, 0 for none.
func meanOf(t sim.Distribution) time.Duration {
	if t.At == nil {
		return 0
	}
	const n = 1000
	sum := 0.0
	for i := range n {
		sum += float64(t.At((float64(i)+0.5)/n)) / n
	}
	return time.Duration(sum)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
