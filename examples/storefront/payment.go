package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirhttp"
)

// receipt is the answer of the payment service.
type receipt struct {
	Number int64 `json:"number"`
}

// paymentService is the payment service, which behaves as the schedule says.
type paymentService struct {
	day    schedule
	opened time.Time
	asked  atomic.Int64
}

const (
	answerTime = 3 * time.Millisecond
	hangTime   = 5 * time.Second // longer than the deadline of any client
)

func (p *paymentService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := p.asked.Add(1)
	now := p.day.at(time.Since(p.opened)).behavior
	if now == failsHalf && number%2 == 0 {
		http.Error(w, "the ledger is locked", http.StatusServiceUnavailable)
		return
	}
	if now == hangs {
		pause(r.Context(), hangTime)
	}
	pause(r.Context(), answerTime)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(receipt{Number: number}) // fails only if the client is gone
}

// pause returns after d, or as soon as the context is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// paymentClient calls the payment service.
type paymentClient struct {
	http     *http.Client
	url      string
	deadline time.Duration // per call
}

// newPaymentClient returns a client whose requests all go through the gate.
func newPaymentClient(addr string, deadline time.Duration, gate *weir.Gate) *paymentClient {
	base := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: 10 * time.Second}
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: base})
	return &paymentClient{http: &http.Client{Transport: transport}, url: "http://" + addr + "/charge", deadline: deadline}
}

// charge makes one payment, within the deadline.
func (c *paymentClient) charge(ctx context.Context) (receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	var got receipt
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, http.NoBody)
	if err != nil {
		return got, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return got, fmt.Errorf("payment service: %s", response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&got)
	return got, err
}
