package weirhttp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirhttp"
)

func TestTheNameOfPerHostStandsInErrorsAndMetrics(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"shop", "bank"} {
		gates := weirhttp.PerHost(name, fragile())
		client := &http.Client{Transport: weirhttp.NewTransport(gates, weirhttp.TransportConfig{Base: always(500)})}
		_, _ = get(client, "http://a.example")
		_, err := get(client, "http://a.example")
		require.ErrorContains(t, err, `"`+name)
		for s := range gates.Observe {
			id := s.Instrument.Name
			for _, v := range s.Values {
				id += " " + v
			}
			require.Falsef(t, seen[id], "%s is told twice", id)
			seen[id] = true
		}
	}
	require.NotEmpty(t, seen)
}
