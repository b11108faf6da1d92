package view_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// beta is a guard of a program: a new feature that can be switched off. It is a stat.Source, so
// that it can be given to admin and to exporters. It has a view: itself.
type beta struct{ off time.Time }

func (*beta) Observe(func(*stat.Series, float64) bool) {}
func (b *beta) Views(yield func(view.View) bool)       { yield(b) }
func (*beta) Kind() string                             { return "feature" }
func (*beta) Name() string                             { return "beta" }
func (b *beta) Hold(d time.Duration)                   { b.off = time.Now().Add(d) }
func (b *beta) Tripped() bool                          { return false }
func (b *beta) Explain() string                        { return "" }

func (b *beta) State() string {
	if time.Now().Before(b.off) {
		return "off"
	}
	return "on"
}

// A guard of the program beside those of this module.
func Example() {
	anybody := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
	ops, err := admin.New(admin.Config{Authorize: anybody}, weir.New("payments", weir.Config{}), new(beta))
	if err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	ops.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/object?name=beta", http.NoBody))
	fmt.Print(w.Body)
	// Output:
	// {
	//   "kind": "feature",
	//   "name": "beta",
	//   "state": "on",
	//   "actions": [
	//     "hold"
	//   ],
	//   "history": []
	// }
}

// of returns the view of a guard with the interface V.
func of[V any](g view.Viewer) (v V) {
	for one := range g.Views {
		v = one.(V)
	}
	return v
}

func fail(context.Context) error { return errors.New("no route to host") }

func ExampleViewer() {
	for v := range limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(5)}).Views {
		fmt.Println(v.Kind(), v.Name())
	}
	// Output: limiter_group users
}

func ExampleView() {
	v := of[view.View](weir.New("payments", weir.Config{}))
	fmt.Println(v.Kind(), v.Name())
	// Output: gate payments
}

func ExampleStateful() {
	b := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1})
	v := of[view.Stateful](b)
	fmt.Println(v.State(), v.Tripped())
	_ = b.Run(context.Background(), fail)
	fmt.Println(v.State(), v.Tripped())
	// Output:
	// closed false
	// open true
}

func ExampleBounded() {
	fmt.Println(of[view.Bounded](inflight.New(inflight.Config{Name: "reports", Limit: 20})).Bound())
	// Output: 0 20 20
}

// A breaker is forced open, and later returns to what it was, unless it was forced or released
// meanwhile.
func ExampleTunable() {
	b := breaker.New("payments", breaker.Config{})
	v := of[view.Tunable](b)
	before := v.Settings()
	set, err := v.Set("by alice: ticket 17", view.Setting{Name: "state", Value: "forced_open"})
	fmt.Println(b.State(), err)
	fmt.Println(v.Restore("the end of the maintenance", set, before), b.State())
	// Output:
	// forced_open <nil>
	// true closed
}

func ExampleSetting() {
	for _, s := range of[view.Tunable](weir.New("payments", weir.Config{Rate: limiter.PerSecond(5), MaxConcurrent: 3})).Settings() {
		fmt.Printf("%s=%q\n", s.Name, s.Value)
	}
	// Output:
	// state=""
	// rate="5/s"
	// burst="0"
	// max_concurrent="3"
}

func ExampleResetter() {
	b := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1})
	_ = b.Run(context.Background(), fail)
	fmt.Println(b.State())
	fmt.Println(of[view.Resetter](b).Reset(context.Background(), "by alice"), b.State())
	// Output:
	// open
	// <nil> closed
}

func ExampleHolder() {
	payments := weir.New("payments", weir.Config{})
	of[view.Holder](payments).Hold(time.Minute)
	fmt.Println(errors.Is(payments.Run(context.Background(), fail), weir.ErrRefused))
	// Output: true
}

func ExampleGroup() {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	hosts.Get("a.example")
	for key, member := range of[view.Group](hosts).Members() {
		fmt.Println(key, member.Kind(), member.(view.Stateful).State())
	}
	// Output: a.example gate closed
}

func ExampleKeyed() {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerMinute(1), Burst: 1})
	users.Get("bob").Take(1)
	bob, ok := of[view.Keyed](users).Key("bob")
	fmt.Println(ok, bob.(view.Resetter).Reset(context.Background(), "by alice"))
	fmt.Println(users.Get("bob").Take(1).OK)
	// Output:
	// true <nil>
	// true
}

func ExampleGuard() {
	b := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1})
	_ = b.Run(context.Background(), fail)
	s := of[view.Guard](b).Status()
	fmt.Println(s.Reason)
	// Output: 1 failures in a row, limit 1
}

func ExampleStatus() {
	b := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1})
	s := of[view.Guard](b).Status()
	fmt.Println(s.Lasts() != nil)
	_ = b.Run(context.Background(), fail)
	s = of[view.Guard](b).Status()
	fmt.Println(s.Lasts() != nil)
	// Output:
	// false
	// true
}

func ExampleIncident() {
	b := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1})
	_ = b.Run(context.Background(), fail)
	b.Reset()
	s := of[view.Guard](b).Status()
	for _, i := range s.Incidents {
		fmt.Println(i.Openings, i.Cause, i.Ended.IsZero())
	}
	// Output: 1 1 failures in a row, limit 1 false
}

func ExampleFailure() {
	b := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1})
	_ = b.Run(context.Background(), fail)
	for _, f := range of[view.Guard](b).Status().Failures {
		fmt.Println(f.Message)
	}
	// Output: no route to host
}
