package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clientOfService returns a client of a payment service that always behaves the same.
func clientOfService(t *testing.T, b behavior) *paymentClient {
	t.Helper()
	day := schedule{run: time.Hour, phases: []phase{{until: 1, behavior: b}}}
	s, err := serve(t.Context(), "127.0.0.1:0", &paymentService{day: day, opened: time.Now()})
	require.NoError(t, err)
	t.Cleanup(s.close)
	client := newPaymentClient(s.addr, 500*time.Millisecond, newTestSettings(t, time.Hour).Gate("payments"))
	t.Cleanup(client.http.CloseIdleConnections)
	return client
}

func TestServiceAnswers(t *testing.T) {
	client := clientOfService(t, answers)
	for want := range int64(3) {
		got, err := client.charge(t.Context())
		require.NoError(t, err)
		require.Equal(t, want+1, got.Number)
	}
}

func TestServiceFailsEveryOtherCall(t *testing.T) {
	client := clientOfService(t, failsHalf)
	for range 3 {
		_, first := client.charge(t.Context())
		_, second := client.charge(t.Context())
		require.NoError(t, first)
		require.EqualError(t, second, "payment service: 503 Service Unavailable")
	}
}

func TestServiceHangsUntilTheDeadline(t *testing.T) {
	client := clientOfService(t, hangs)
	client.deadline = 20 * time.Millisecond

	_, err := client.charge(t.Context())

	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAClosedServerRefusesConnections(t *testing.T) {
	s, err := serve(t.Context(), "127.0.0.1:0", http.NotFoundHandler())
	require.NoError(t, err)
	s.close()

	_, err = newPaymentClient(s.addr, time.Second, newTestSettings(t, time.Hour).Gate("payments")).charge(t.Context())
	require.ErrorContains(t, err, "connection refused")
}

func TestClosingTheShopAbortsNoCall(t *testing.T) {
	arrived, answer := make(chan struct{}, 1000), make(chan struct{})
	s, err := serve(t.Context(), "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		printTo(w, "{}")
	}))
	require.NoError(t, err)
	t.Cleanup(s.close)
	shop := newShop(newSchedule(time.Hour), newPaymentClient(s.addr, time.Minute, newTestSettings(t, time.Hour).Gate("payments")))
	t.Cleanup(shop.client.http.CloseIdleConnections)
	ctx, closeShop := context.WithCancel(t.Context())
	closed := make(chan struct{})

	go func() {
		shop.open(ctx, time.Now())
		close(closed)
	}()
	<-arrived
	closeShop()
	close(answer)
	<-closed

	require.Positive(t, shop.customers.Total())
	require.Equal(t, shop.customers.Total(), shop.sales.succeeded.Load(), "customers who came before the end are served")
}
