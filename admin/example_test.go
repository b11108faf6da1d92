package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/limiter"
)

// Payments are stopped for ten minutes. The requests are those of curl in docs/admin.md.
func Example() {
	payments := weir.New("payments", weir.Config{Rate: limiter.PerSecond(100)})
	ops, err := admin.New(admin.Config{
		Authorize: func(r *http.Request, _ admin.Action) (string, error) {
			name, password, _ := r.BasicAuth()
			if password != "s3cret" { // ask your directory
				return "", errors.New("wrong password")
			}
			return name, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	}, payments)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/weir/", http.StripPrefix("/admin/weir", ops))
	server := httptest.NewServer(mux)
	defer server.Close()

	curl := func(path, body string) {
		r, _ := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader(body)) //nolint:noctx // as curl does
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth("alice", "s3cret")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		defer answer.Body.Close()
		content, _ := io.ReadAll(answer.Body)
		var object struct{ State, Rate, Error string }
		_ = json.Unmarshal(content, &object)
		fmt.Println(answer.StatusCode, strings.Join([]string{object.State, object.Rate}, " ")+object.Error)
	}
	curl("/admin/weir/force?name=payments", `{"state": "open", "for": "10m", "reason": "ticket 17"}`)
	curl("/admin/weir/limits?name=payments", `{"rate": "20/s", "for": "1h"}`)
	curl("/admin/weir/release?name=payments", `{}`)
	curl("/admin/weir/release?name=paymnets", `{}`)
	// Output:
	// 200 forced_open 100/s
	// 200 forced_open 20/s
	// 200 closed 20/s
	// 404  there is no object "paymnets"
}

// There is no default for Authorize.
func ExampleConfig() {
	_, err := admin.New(admin.Config{})
	fmt.Println(err)
	// Output: admin: Authorize is nil, must be set: no request is allowed by default
}

// A handler takes the same list of sources as the exporters, and leaves out sources that it cannot
// act on.
func ExampleHandler() {
	payments := weir.New("payments", weir.Config{})
	// only for this example
	authorize := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
	ops, err := admin.New(admin.Config{Authorize: authorize}, payments, payments.Breaker())
	if err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	ops.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/objects", http.NoBody))
	fmt.Print(w.Body)
	// Output:
	// {
	//   "objects": [
	//     {
	//       "kind": "gate",
	//       "name": "payments",
	//       "state": "closed",
	//       "actions": [
	//         "force",
	//         "release",
	//         "drain",
	//         "reset",
	//         "hold"
	//       ]
	//     }
	//   ]
	// }
}

// Guests may read. Only operators may change limits.
func ExampleAction() {
	authorize := func(user string, a admin.Action) error {
		if a.Verb == "read" || user == "operator" {
			return nil
		}
		return fmt.Errorf("%s may not change %s", user, a.Name)
	}
	fmt.Println(authorize("guest", admin.Action{Verb: "read", Name: "payments"}))
	fmt.Println(authorize("guest", admin.Action{Verb: "limits", Name: "payments"}))
	// Output:
	// <nil>
	// guest may not change payments
}
