package weir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
)

func TestPartsValidateNamesAllFaults(t *testing.T) {
	b, bucket := breaker.New("b", breaker.Config{}), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1)})
	for _, good := range []weir.Parts{
		{Breaker: b}, {Breaker: b, Limiter: limiterOnly{bucket}}, {Breaker: b, Limiter: bucket, Remote: newRemote(1), MaxWait: 1},
	} {
		require.NoError(t, good.Validate())
	}
	for _, c := range []struct {
		parts weir.Parts
		want  string
	}{
		{weir.Parts{}, "weir: Breaker is nil, must be a *breaker.Breaker"},
		{weir.Parts{MaxWait: -1}, "weir: Breaker is nil, must be a *breaker.Breaker\nweir: MaxWait is -1ns, must be at least 0"},
		{
			weir.Parts{Breaker: b, Throttle: throttle.New("b", throttle.Config{})},
			`weir: Throttle and Breaker are both named "b", must have different names because their metrics have the same names`,
		},
		{weir.Parts{Breaker: b, MaxWait: 1}, "weir: MaxWait is 1ns, must be 0 without a Limiter, a Remote and an InFlight"},
		{
			weir.Parts{Breaker: b, Limiter: limiterOnly{bucket}, Remote: struct{ limiter.Remote }{newRemote(1)}, MaxWait: 1},
			"weir: MaxWait is 1ns, must be 0 because Limiter is a weir_test.limiterOnly, which is not a limiter.WaitLimiter\n" +
				"weir: MaxWait is 1ns, must be 0 because Remote is a struct { limiter.Remote }, which is not a limiter.WaitLimiter",
		},
	} {
		require.EqualError(t, c.parts.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { weir.Join("g", c.parts) })
	}
}
