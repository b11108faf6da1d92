// Package weirtest helps to test programs that use weir: it has a service that fails as told, and
// checks of transitions, refusals and alerts.
//
// A test runs in a bubble of testing/synctest, where time passes at once, and puts a Service in the
// place of the service that the program calls:
//
//	func TestChargesStopDuringAnOutage(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			var service weirtest.Service
//			var transitions weirtest.Transitions
//			gate := weir.New("payments", weir.Config{Breaker: breaker.Config{OnChange: transitions.Record}})
//
//			service.Always(weirtest.Answer{Err: weirtest.ErrDown})
//			for range 20 {
//				_ = gate.Run(t.Context(), service.Call)
//			}
//			weirtest.WantRefused(t, gate.Run(t.Context(), service.Call), breaker.ErrOpen)
//			transitions.Want(t, breaker.Open)
//		})
//	}
//
// A Service is scripted with answers:
//
//	script           answers of the service
//	                 200 OK, nil
//	Next(2, slow)    slow, slow, 200 OK, 200 OK, …
//	Always(down)     down, down, …
//	Next(1, slow)    slow, down, down, …
//
// # Guarantees
//
//   - The zero value of each type works. All methods may be called from any number of goroutines.
//   - The checks call Errorf and Helper of testing.TB only, so they need no test's goroutine, and a
//     test goes on after a failure.
//   - Nothing opens a listener, starts a goroutine, or waits longer than an Answer says. All is
//     right in bubbles, package variables too.
//
// To put a breaker into a state, use Force, OpenFor, Release and Reset of package breaker. Page
// docs/testing.md of the repository has recipes.
package weirtest
