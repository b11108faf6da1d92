package weirgrpc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirgrpc"
)

// A loop over what a source shows may be left after any series: the runtime panics if the
// source then goes on.
func TestALoopOverASourceMayBeLeftAtAnySeries(t *testing.T) {
	gates := weirgrpc.One(weir.New("shop", weir.Config{Breaker: breaker.Config{Latency: true}}))
	for range gates.Histograms {
		break
	}
	for name, s := range map[string]stat.Source{"gates": gates} {
		all := 0
		for range s.Observe {
			all++
		}
		require.Positive(t, all, name)
		for last := range all {
			round := 0
			for range s.Observe {
				if round == last {
					break
				}
				round++
			}
			require.Equal(t, last, round, name)
		}
	}
}
