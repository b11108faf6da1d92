package main

import (
	"context"
	"net"
	"net/http"
	"time"
)

// server is a listening HTTP server.
type server struct {
	http     *http.Server
	listener net.Listener
	addr     string // host and port
}

func serve(ctx context.Context, addr string, h http.Handler) (*server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &server{listener: listener, addr: listener.Addr().String(), http: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       30 * time.Second,
	}}
	go func() { _ = s.http.Serve(listener) }() // ends with ErrServerClosed
	return s, nil
}

// close shuts the server down, and aborts requests that take more than a second.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// Errors are ignored, because the program is ending.
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	_ = s.listener.Close() // the server does not close it if Serve has not started yet
}
