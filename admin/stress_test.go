package admin_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Users act on the same objects while calls are made and timed actions end. When all have ended,
// the state before the first one is back.
func TestConcurrentActionsEndInTheStateBefore(t *testing.T) {
	hosts := weir.NewGroup[int]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1000), MaxConcurrent: 7}})
	for i := range 3 {
		hosts.Get(i)
	}
	hosts.Get(2).Breaker().Force(breaker.Shadow, "")
	k := newHandlerTest(t, hosts)
	var wg sync.WaitGroup
	for user := range 8 {
		wg.Go(func() {
			as := withHeader("Authorization", fmt.Sprintf("Bearer user-%d", user))
			for range 30 {
				target, body := fmt.Sprintf("/force?name=hosts&key=%d", rand.IntN(3)), `{"state":"open","for":"1ms"}`
				switch rand.IntN(4) {
				case 0:
					target, body = "/limits?name=hosts&all=true", `{"rate":"5/s","max_concurrent":2,"for":"1ms"}`
				case 1:
					target, body = fmt.Sprintf("/release?name=hosts&key=%d", rand.IntN(3)), `{"for":"2ms"}`
				}
				status := k.send("POST", target, body, as).Status
				if status != 200 && status != 409 {
					require.Equal(t, 429, status)
				}
				if permit, err := hosts.Get(0).Allow(t.Context()); err == nil {
					permit.Record(t.Context(), nil, breaker.Success)
				}
				k.send("GET", "/members?name=hosts", "", as)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		o := k.send("GET", "/object?name=hosts", "", withHeader("Authorization", "Bearer last"))
		return len(o.Timed) == 0 && o.Rate == "1000/s" && o.MaxConcurrent == 7 &&
			hosts.Get(0).Breaker().State() == breaker.Closed && hosts.Get(1).Breaker().State() == breaker.Closed &&
			hosts.Get(2).Breaker().State() == breaker.Shadow
	}, time.Minute, 200*time.Millisecond)
}

func TestAnActionInProgressRefusesAnother(t *testing.T) {
	var k *handlerTest
	var inner answer
	b := breaker.New("b", breaker.Config{OnChange: func(breaker.Change) {
		// stands for another user while a callback hangs
		inner = k.send("POST", "/release?name=b", "")
	}})
	k = newHandlerTest(t, b)
	k.sendAction("force", "name=b", `{"state":"open"}`)
	require.Equal(t, 409, inner.Status)
	require.Contains(t, inner.Error, "in progress")
	require.Equal(t, breaker.ForcedOpen, b.State())
}
