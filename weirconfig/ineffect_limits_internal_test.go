package weirconfig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirhttp"
)

// limitChanges are changes of each field of a limit and its policies.
var limitChanges = map[string][2]string{
	"count_refused":   {"policies: [POLICY, {name: day, limit: 9, window: 24h, by: nothing}]", "count_refused: true, policies: [POLICY, {name: day, limit: 9, window: 24h, by: nothing}]"},
	"legacy":          {"policies: [POLICY]", "policies: [POLICY], legacy: true"},
	"quiet":           {"policies: [POLICY]", "policies: [POLICY], quiet: true"},
	"policies":        {"policies: [POLICY]", "policies: [POLICY, {name: day, limit: 9, window: 24h, by: nothing}]"},
	"proxies.trusted": {"policies: [POLICY], proxies: {trusted: [10.0.0.0/8]}", "policies: [POLICY], proxies: {trusted: [10.0.0.0/8, 192.168.0.0/16]}"},
	"proxies.header":  {"policies: [POLICY], proxies: {trusted: [10.0.0.0/8]}", "policies: [POLICY], proxies: {trusted: [10.0.0.0/8], header: X-Real-Ip}"},

	"policies.name":      {"policies: [POLICY]", "policies: [{name: other, limit: 2, window: 1s, by: ip}]"},
	"policies.unit":      {"policies: [POLICY]", "policies: [{name: second, limit: 2, window: 1s, by: ip, unit: tokens}]"},
	"policies.limit":     {"policies: [POLICY]", "policies: [{name: second, limit: 1, window: 1s, by: ip}]"},
	"policies.window":    {"policies: [POLICY]", "policies: [{name: second, limit: 2, window: 3s, by: ip}]"},
	"policies.by":        {"policies: [POLICY]", `policies: [{name: second, limit: 2, window: 1s, by: "header:X-Api-Key"}]`},
	"policies.shadow":    {"policies: [POLICY]", "policies: [{name: second, limit: 2, window: 1s, by: ip, shadow: true}]"},
	"policies.show_keys": {"policies: [POLICY]", "policies: [{name: second, limit: 2, window: 1s, by: ip, show_keys: true}]"},
	"policies.max_keys":  {"policies: [POLICY]", "policies: [{name: second, limit: 2, window: 1s, by: ip, max_keys: 1}]"},
	"policies.share_new": {
		"policies: [{name: second, limit: 2, window: 1s, by: ip, max_keys: 1}]",
		"policies: [{name: second, limit: 2, window: 1s, by: ip, max_keys: 1, share_new: true}]",
	},
	"policies.rate":  {"policies: [{name: second, rate: 5/s, burst: 3, by: ip}]", "policies: [{name: second, rate: 2/s, burst: 3, by: ip}]"},
	"policies.burst": {"policies: [{name: second, rate: 5/s, burst: 3, by: ip}]", "policies: [{name: second, rate: 5/s, burst: 2, by: ip}]"},
}

// exerciseLimit sends requests of several clients, some over proxies.
func exerciseLimit(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	h := s.Limit("a").Handler(http.NotFoundHandler())
	for i := range 40 {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = []string{"10.0.0.1:1", "10.0.0.2:1", "192.168.0.1:1"}[i%3]
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i%4))
		r.Header.Set("X-Real-Ip", fmt.Sprintf("198.51.100.%d", i%5))
		r.Header.Set("X-Api-Key", fmt.Sprint(i%6))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Fprintln(trace, w.Code, w.Header(), w.Body)
		sleep(50 * time.Millisecond)
	}
	for _, key := range s.Limit("a").Busiest(100) {
		if key.Limiter == "" || !strings.Contains(key.Key, ".") {
			// a hash, which differs in each process and limit
			key.Key = "hashed"
		}
		fmt.Fprintln(trace, key)
	}
}

func TestEachChangeOfALimitIsInEffect(t *testing.T) {
	keys := keysOf(reflect.TypeFor[limit](), "")
	keys = append(keys, keysOf(reflect.TypeFor[weirhttp.Proxies](), "proxies.")...)
	for _, key := range append(keys, keysOf(reflect.TypeFor[policy](), "policies.")...) {
		require.Contains(t, limitChanges, key)
		c := change{key: key, exercise: exerciseLimit}
		text := func(fields string) string {
			return "limits: {a: {" + strings.ReplaceAll(fields, "POLICY", "{name: second, limit: 2, window: 1s, by: ip}") + "}}"
		}
		c.before, c.after = text(limitChanges[key][0]), text(limitChanges[key][1])
		c.requireInEffect(t)
	}
}
