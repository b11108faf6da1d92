package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/stat"
)

// withAdmin adds the admin API of the source to next, at /admin/weir/, for requests that have the
// token. Without a token there is no admin API.
func withAdmin(next http.Handler, token string, source stat.Source) (http.Handler, error) {
	if token == "" {
		return next, nil
	}
	want := sha256.Sum256([]byte(token))
	api, err := admin.New(admin.Config{
		Authorize: func(r *http.Request, _ admin.Action) (string, error) {
			given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			got := sha256.Sum256([]byte(given))
			if subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
				return "", errors.New("wrong token")
			}
			return "operator", nil
		},
		Logger: slog.New(slog.DiscardHandler), // the terminal shows the page
	}, source)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.Handle("/admin/weir/", http.StripPrefix("/admin/weir", api))
	return mux, nil
}
