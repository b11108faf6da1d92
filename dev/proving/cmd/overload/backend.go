package main

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// The capacity of the handler.
const (
	servers  = 10
	work     = 20 * time.Millisecond
	capacity = float64(servers) * float64(time.Second) / float64(work)
)

// backend is a handler that serves a fixed number of requests at the same time. Further ones wait
// for their turn, and leave when their client has gone.
type backend struct{ turns chan struct{} }

func newBackend() *backend { return &backend{make(chan struct{}, servers)} }

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case b.turns <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-b.turns }()
	time.Sleep(time.Duration(rand.ExpFloat64() * float64(work)))
	w.WriteHeader(http.StatusOK)
}
