package notify_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

// ruleOfMembers is a rule that fires for n members.
func ruleOfMembers(n int) alert.Rule {
	members := map[string]int{}
	for i := range n {
		members[fmt.Sprint("h", i)] = i
	}
	return alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(members), func(int) alert.Value {
		return alert.Bool(func() bool { return true })
	})}
}

func TestSlackRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		n := notify.NewSlack(notify.Config{URL: "http://slack.example", Transport: server.transport})
		for range 70 {
			require.NoError(t, n.Notify(t.Context(), firingAlert()))
		}
		times := server.times()
		for i := range times[10:] {
			require.GreaterOrEqual(t, times[i+10].Sub(times[i]), time.Second, "ten at once, then one per second")
		}
		require.Equal(t, 60*time.Second, times[69].Sub(times[0]))
		server.stop()
	})
}

// The rate allows one message per second, but an attempt may take only 100 ms.
func TestRateWithAShortTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		var told atomic.Int64
		server.answer.Store(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
		m := alert.NewMonitor(alert.Config{
			Timeout: 100 * time.Millisecond, Logger: discardLogger(),
			Notify: []alert.Notifier{notify.NewSlack(notify.Config{URL: "http://slack.example", Transport: server.transport})},
		}, ruleOfMembers(30))
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 30, told.Load())
		cancel()
		server.stop()
	})
}

func TestWaitForTheRateEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		n := notify.NewSlack(notify.Config{URL: "http://slack.example", Transport: server.transport})
		for range 10 {
			require.NoError(t, n.Notify(t.Context(), firingAlert()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		require.Equal(t, context.Canceled, n.Notify(ctx, firingAlert()))
		short, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		err := n.Notify(short, firingAlert())
		var failed *alert.DeliveryError
		require.ErrorAs(t, err, &failed)
		require.Positive(t, failed.RetryAfter())
		require.Zero(t, notify.BreakerOf(n).Totals().Failures, "the server did nothing wrong")
		server.stop()
	})
}

// This test sends a mail as the other mail tests do, but over TCP and with the default dialer.
func TestMailOverTCP(t *testing.T) {
	s := newMailServer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if conn, err := listener.Accept(); err == nil {
			s.serve(conn)
		}
	}()
	c := mailConfig(s)
	c.Server, c.Dial, c.TLS.ServerName = listener.Addr().String(), nil, mailHost
	require.NoError(t, notify.NewMail(c).Notify(t.Context(), firingAlert()))
	<-served
	require.Empty(t, s.faults)
	require.Len(t, s.mails, 1)
}
