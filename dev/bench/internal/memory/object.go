package memory

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// Object is a kind of object whose memory is measured.
type Object struct {
	Name  string
	N     int     // the number of objects that one measurement builds
	Bound float64 // the most bytes that one object may take, or 0 for no bound

	// Build returns a function that builds n objects. The inputs of that function exist before it
	// is called, and are not measured.
	Build func(n int) func() any
}

// Size is the number of bytes that one object takes.
type Size struct {
	Name         string
	Bytes, Bound float64
}

// Size measures the object.
func (o Object) Size() Size { return Size{o.Name, Grown(o.Build(o.N)) / float64(o.N), o.Bound} }

// Missed reports whether there is a bound and it is missed.
func (s Size) Missed() bool { return s.Bound > 0 && s.Bytes > s.Bound }

func (s Size) String() string {
	if s.Bound > 0 {
		return fmt.Sprintf("%s: %.1f bytes, bound %.0f", s.Name, s.Bytes, s.Bound)
	}
	return fmt.Sprintf("%s: %.1f bytes", s.Name, s.Bytes)
}

// All returns the objects. The keyed ones have the given number of keys.
func All(keys int) []Object {
	return append(singleObjects(), Keyed(keys)...)
}

// singleObjects returns the objects that are not members of a collection.
func singleObjects() []Object {
	perSecond := limiter.PerSecond(1)
	return []Object{
		{"breaker.Breaker", 1000, 1400, repeat(func() any { return afterOneCall(breaker.Config{}) })},
		{"breaker.Breaker, last 100 calls", 1000, 0, repeat(func() any { return afterOneCall(breaker.Config{LastCalls: 100}) })},
		{"breaker.Breaker, latency", 200, 10_000, repeat(func() any { return afterOneCall(breaker.Config{Latency: true}) })},
		{"gobreaker, 10 buckets", 1000, 0, repeat(func() any {
			return gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: time.Second})
		})},
		{"failsafe-go breaker, time window", 1000, 0, repeat(func() any {
			return circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build()
		})},
		{"window.Counter, 10 buckets", 1000, 0, repeat(func() any { return window.NewCounter(window.Config{}) })},
		{"window.Calls, 10 buckets", 1000, 600, repeat(func() any { return afterOneRecord(window.CallsConfig{}) })},
		{"window.Calls, 100 buckets", 1000, 600, repeat(func() any { return afterOneRecord(window.CallsConfig{Buckets: 100}) })},
		{"window.Calls with latency: two histograms of 256 buckets, one over time", 200, 0, repeat(func() any { return afterOneRecord(window.CallsConfig{Latency: true}) })},
		{"window.View, 10 buckets", 1000, 0, repeat(func() any { return window.NewView(window.Config{}) })},
		{"limiter.TokenBucket", 1000, 0, repeat(func() any { return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: perSecond}) })},
		{"limiter.NewFixedWindow", 1000, 0, repeat(func() any { return limiter.NewFixedWindow(limiter.WindowConfig{Limit: 100, Window: time.Minute}) })},
		{"limiter.NewSlidingWindow, 10 parts", 1000, 0, repeat(func() any {
			return limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 100, Window: time.Minute})
		})},
		{"limiter.NewSlidingLog, full with 100", 1000, 0, repeat(func() any { return newFullLog(100) })},
		{"inflight.Limiter", 1000, 0, repeat(func() any { return inflight.New(inflight.Config{Limit: 10}) })},
		{"x/time/rate.Limiter", 1000, 0, repeat(func() any { return rate.NewLimiter(1, 1) })},
		{"weir.Gate", 1000, 1700, repeat(func() any { return gateAfterOneCall(weir.Config{}) })},
		{"weir.Gate with a limit", 1000, 2400, repeat(func() any { return gateAfterOneCall(weir.Config{Rate: perSecond}) })},
		{"alert rule over five minutes", 1000, 0, newRules},
	}
}

// repeat returns a Build that calls one n times.
func repeat(one func() any) func(n int) func() any {
	return func(n int) func() any {
		all := make([]any, n)
		return func() any {
			for i := range all {
				all[i] = one()
			}
			return all
		}
	}
}

func afterOneCall(c breaker.Config) any {
	b := breaker.New("bench", c)
	_ = b.Run(context.Background(), succeed)
	return b
}

func gateAfterOneCall(c weir.Config) any {
	g := weir.New("bench", c)
	_ = g.Run(context.Background(), succeed)
	return g
}

func succeed(context.Context) error { return nil }

func afterOneRecord(c window.CallsConfig) any {
	w := window.NewCalls(c)
	w.Record(window.Success, time.Millisecond)
	return w
}

func newFullLog(limit int) any {
	l := limiter.NewSlidingLog(limiter.WindowConfig{Limit: limit, Window: time.Hour})
	for l.Take(1).OK {
	}
	return l
}

func newRules(n int) func() any {
	calls := window.NewCalls(window.CallsConfig{})
	all := make([]alert.Rule, n)
	for i := range all {
		all[i] = alert.Rule{Name: strconv.Itoa(i), Value: alert.FailureRate(calls, 5*time.Minute), When: alert.Above(0.5)}
	}
	return func() any {
		m := alert.NewMonitor(alert.Config{}, all...)
		m.Evaluate(time.Now())
		return m
	}
}
