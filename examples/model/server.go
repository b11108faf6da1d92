package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// plan is what the model allows a key in a minute.
type plan struct{ requests, tokens int }

var plans = map[string]plan{
	"small": {requests: 600, tokens: 20_000},
	"large": {requests: 6000, tokens: 200_000},
}

// account is what a key has left. It refills continuously. Tokens are taken as they are streamed,
// so they can be owed, and a request is refused while they are.
type account struct {
	plan   plan
	minute time.Duration

	mu               sync.Mutex
	requests, tokens float64
	at               time.Time
}

func newAccount(p plan, minute time.Duration) *account {
	return &account{plan: p, minute: minute, requests: float64(p.requests), tokens: float64(p.tokens), at: time.Now()}
}

// refill adds what has come since the last time. The lock is held.
func (a *account) refill() {
	now := time.Now()
	minutes := float64(now.Sub(a.at)) / float64(a.minute)
	a.at = now
	a.requests = min(a.requests+minutes*float64(a.plan.requests), float64(a.plan.requests))
	a.tokens = min(a.tokens+minutes*float64(a.plan.tokens), float64(a.plan.tokens))
}

// begin takes a request, and reports whether it is allowed.
func (a *account) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill()
	if a.requests < 1 || a.tokens <= 0 {
		return false
	}
	a.requests--
	return true
}

// use takes a token.
func (a *account) use() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill()
	a.tokens--
}

// serve runs the model on a free port.
func serve(minute time.Duration) (url string, stop func(), err error) {
	accounts := map[string]*account{}
	for key, p := range plans {
		accounts[key] = newAccount(p, minute)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		a := accounts[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		switch {
		case a == nil:
			http.Error(w, "unknown key", http.StatusUnauthorized)
			return
		case !a.begin():
			http.Error(w, "too many", http.StatusTooManyRequests)
			return
		}
		for token := range 20 + int(rand.ExpFloat64()*100)%900 {
			a.use()
			_, _ = fmt.Fprintln(w, "token", token)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
