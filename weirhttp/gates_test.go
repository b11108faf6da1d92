package weirhttp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirhttp"
)

type gateFunc = func(*http.Request) *weir.Gate

// gatePerHost returns a gate function with one gate per host, in a group with the name "http".
func gatePerHost(c weir.Config) gateFunc {
	return weirhttp.Per(weir.NewGroup[string]("http", weir.GroupConfig{Gate: c}), weirhttp.ByHost)
}

func TestErrorsAndMetricsHaveTheNameOfTheGroup(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"shop", "bank"} {
		hosts := weir.NewGroup[string](name, weir.GroupConfig{Gate: opensAfterOneFailure()})
		client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{Base: alwaysRespond(500)})}
		_, _ = get(client, "http://a.example")
		_, err := get(client, "http://a.example")
		require.ErrorContains(t, err, `"`+name)
		for s := range hosts.Observe {
			id := s.Instrument.Name
			for _, v := range s.Values {
				id += " " + v
			}
			require.Falsef(t, seen[id], "two groups have the series %s", id)
			seen[id] = true
		}
	}
	require.NotEmpty(t, seen)
}
