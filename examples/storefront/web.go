package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/weirconfig"
)

// web serves the live page and the admin API.
type web struct {
	http     *http.Server
	listener net.Listener
	addr     string // host and port
}

// newWeb listens at addr. It serves the live page of the set at /debug/weir/, and the admin API at
// /admin/weir/ if there is a token.
func newWeb(ctx context.Context, addr, token string, set *weirconfig.Set) (*web, error) {
	page, err := dashboard.New(dashboard.Config{Title: "storefront"}, set)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /debug/weir/", http.StripPrefix("/debug/weir", page))
	if token != "" {
		api, err := newAdmin(token, set)
		if err != nil {
			return nil, err
		}
		mux.Handle("/admin/weir/", http.StripPrefix("/admin/weir", api))
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	w := &web{listener: listener, addr: listener.Addr().String(), http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       30 * time.Second,
	}}
	go func() { _ = w.http.Serve(listener) }() // ends with ErrServerClosed
	return w, nil
}

// newAdmin returns the admin API of the set, for requests that have the token.
func newAdmin(token string, set *weirconfig.Set) (http.Handler, error) {
	//readme:authorize
	want := sha256.Sum256([]byte("Bearer " + token))
	authorize := func(r *http.Request, _ admin.Action) (user string, err error) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			return "", errors.New("wrong token")
		}
		return "operator", nil
	}
	//readme:end
	// the terminal shows the shops
	return admin.New(admin.Config{Authorize: authorize, Logger: slog.New(slog.DiscardHandler)}, set)
}

func (w *web) pageURL() string { return "http://" + w.addr + "/debug/weir/" }

// close aborts all requests, because a stream of the live page has no end.
func (w *web) close() {
	_ = w.http.Close()
	_ = w.listener.Close() // the server does not close it if Serve has not started yet
}
