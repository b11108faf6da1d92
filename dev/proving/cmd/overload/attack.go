package main

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// result counts the responses that clients got.
type result struct {
	mu              sync.Mutex
	answers         []time.Duration // of the requests with status 200
	refused, failed int
}

func (r *result) good() int { return len(r.answers) }

// quantile returns how long a share of the answers took at most, or 0 if there are none.
func (r *result) quantile(share float64) time.Duration {
	if len(r.answers) == 0 {
		return 0
	}
	slices.Sort(r.answers)
	return r.answers[int(share*float64(len(r.answers)-1))]
}

// attack serves the handler on loopback and sends requests as a Poisson process. It does not wait
// for responses. Before that, it sends requests at half of the capacity of the handler for a while.
// They are not counted.
func attack(ctx context.Context, h http.Handler, s settings) (*result, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 4096}
	defer func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	}()
	r := &result{}
	client, url := &http.Client{Transport: transport}, "http://"+listener.Addr().String()
	var all sync.WaitGroup
	next := time.Now()
	load := func(r *result, factor float64, length time.Duration) {
		for end := next.Add(length); next.Before(end); {
			time.Sleep(time.Until(next))
			all.Go(func() { r.send(ctx, client, url, s.timeout) })
			next = next.Add(time.Duration(rand.ExpFloat64() * float64(time.Second) / (factor * capacity)))
		}
	}
	load(&result{}, 0.5, s.warm)
	load(r, s.factor, s.length)
	all.Wait()
	return r, nil
}

// send sends one request and counts its result.
func (r *result) send(ctx context.Context, client *http.Client, url string, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		panic(err) // the URL is that of a listener
	}
	began := time.Now()
	response, err := client.Do(request)
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
		return
	}
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		r.answers = append(r.answers, took)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		r.refused++
	default:
		r.failed++
	}
}
