package weirhttp_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
	"github.com/weir-go/weir/weirhttp"
)

// unlimitedRemote is a remote limit that allows all requests.
type unlimitedRemote struct{}

func (unlimitedRemote) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{OK: true, Limit: 9, Remaining: 9}, nil
}

func TestPolicyFaults(t *testing.T) {
	bucket := weirhttp.Policy{Name: "p", Rate: limiter.PerSecond(1), By: weirhttp.ByIP}
	window := weirhttp.Policy{Name: "p", Limit: 1, Window: time.Second, By: weirhttp.ByIP}
	remote := weirhttp.Policy{Name: "p", Remote: func(string) limiter.Remote { return unlimitedRemote{} }, By: weirhttp.ByIP}
	calendar := weirhttp.Policy{Name: "p", Quota: quota.New(quota.Config{Limit: 1, Every: quota.Day}), By: weirhttp.ByIP}
	for _, c := range []struct {
		of     weirhttp.Policy
		change func(*weirhttp.Policy)
		want   string
	}{
		{bucket, func(p *weirhttp.Policy) { p.Name = "" }, `weirhttp: policy "": Name has 0 bytes, must be 1 to 64 printable ASCII characters without " and \`},
		{bucket, func(p *weirhttp.Policy) { p.Name = `a"b` }, `Name has 3 bytes`},
		{bucket, func(p *weirhttp.Policy) { p.Name = "tägig" }, `Name has 6 bytes`},
		{bucket, func(p *weirhttp.Policy) { p.Name = strings.Repeat("n", 65) }, `Name has 65 bytes`},
		{window, func(p *weirhttp.Policy) { p.Unit = `a"b` }, `weirhttp: policy "p": Unit has 3 bytes, must be at most 64 printable ASCII characters without " and \`},
		{window, func(p *weirhttp.Policy) { p.Unit = strings.Repeat("u", 65) }, `Unit has 65 bytes`},
		{bucket, func(p *weirhttp.Policy) { p.Burst = -1 }, `weirhttp: policy "p": Burst is -1, must be between 1 and 1000000000 (or 0 for the default)`},
		{bucket, func(p *weirhttp.Policy) { p.Burst = 1e9 + 1 }, `Burst is 1000000001`},
		{bucket, func(p *weirhttp.Policy) { p.Rate = limiter.Unlimited() }, `weirhttp: policy "p": Rate is unlimited, must be finite`},
		{bucket, func(p *weirhttp.Policy) { p.Rate = limiter.PerSecond(-1) }, `weirhttp: policy "p": limiter: `},
		{bucket, func(p *weirhttp.Policy) { p.Rate, p.Burst = limiter.Rate{}, 5 }, `weirhttp: policy "p": Rate is missing, must be set if Burst is`},
		{window, func(p *weirhttp.Policy) { p.Limit = 0 }, `weirhttp: policy "p": Limit is 0, must be between 1 and 1000000000`},
		{window, func(p *weirhttp.Policy) { p.Limit = -1 }, `Limit is -1`},
		{window, func(p *weirhttp.Policy) { p.Limit = 1e9 + 1 }, `Limit is 1000000001`},
		{window, func(p *weirhttp.Policy) { p.Window = 0 }, `weirhttp: policy "p": Window is 0s, must be between 1ms and 8784h0m0s`},
		{window, func(p *weirhttp.Policy) { p.Window = 367 * 24 * time.Hour }, `Window is 8808h0m0s`},
		{window, func(p *weirhttp.Policy) { p.Rate = limiter.PerSecond(1) }, `weirhttp: policy "p": has a Rate or Burst and a Limit or Window, must have only one of the two forms`},
		{window, func(p *weirhttp.Policy) { p.Burst = 1 }, `must have only one of the two forms`},
		{window, func(p *weirhttp.Policy) { p.Limit, p.Window = 0, 0 }, `weirhttp: policy "p": has no limit, must have Rate, or Limit and Window, or Quota, or Remote`},
		{window, func(p *weirhttp.Policy) { p.By = nil }, `weirhttp: policy "p": By is nil, must be ByIP, ByHeader or another key function, or ByNothing for one quota of all requests`},
		{window, func(p *weirhttp.Policy) { p.MaxKeys = -1 }, `weirhttp: policy "p": MaxKeys is -1, must be at least 1 (or 0 for the default)`},
		{remote, func(p *weirhttp.Policy) { p.Limit, p.Window = 1, time.Second }, `weirhttp: policy "p": has a Remote and another limit, must have only one of them`},
		{calendar, func(p *weirhttp.Policy) { p.Burst = 1 }, `weirhttp: policy "p": has a Quota and another limit, must have only one of them`},
		{calendar, func(p *weirhttp.Policy) { p.Window = time.Second }, `must have only one of them`},
		{calendar, func(p *weirhttp.Policy) { p.Remote = remote.Remote }, `must have only one of them`},
		{calendar, func(p *weirhttp.Policy) { p.ShareNew = true }, `weirhttp: policy "p": has a Quota, must have none of Shadow, ShowKeys, MaxKeys and ShareNew: see quota.Config`},
		{calendar, func(p *weirhttp.Policy) { p.Shadow, p.ShowKeys, p.MaxKeys = true, true, 1 }, `must have none of Shadow`},
		{remote, func(p *weirhttp.Policy) { p.MaxKeys = 9 }, `weirhttp: policy "p": has a Remote, must have none of Shadow, MaxKeys and ShareNew`},
		{remote, func(p *weirhttp.Policy) { p.Shadow = true }, `must have none of Shadow`},
		{remote, func(p *weirhttp.Policy) { p.ShareNew = true }, `and ShareNew`},
	} {
		c.change(&c.of)
		config := weirhttp.LimitConfig{Policies: []weirhttp.Policy{c.of}}
		err := config.Validate()
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n", "one fault is one line")
		require.PanicsWithError(t, err.Error(), func() { weirhttp.NewLimit(config) })
	}
	for _, good := range []weirhttp.Policy{bucket, window, calendar, remote} {
		require.NoError(t, weirhttp.LimitConfig{Policies: []weirhttp.Policy{good}}.Validate())
	}
	require.NoError(t, weirhttp.LimitConfig{}.Validate())
}

func TestLimitConfigNamesAllFaults(t *testing.T) {
	c := weirhttp.LimitConfig{
		Proxies: weirhttp.Proxies{Trusted: []netip.Prefix{{}}},
		Policies: []weirhttp.Policy{
			{Name: "p", Limit: -1, Window: time.Second, MaxKeys: -5},
			{Name: "p", Rate: limiter.PerSecond(1), By: weirhttp.ByIP},
		},
	}
	require.EqualError(t, c.Validate(), strings.Join([]string{
		"weirhttp: Proxies.Trusted: invalid Prefix is not a network",
		`weirhttp: policy "p": Limit is -1, must be between 1 and 1000000000`,
		`weirhttp: policy "p": By is nil, must be ByIP, ByHeader or another key function, or ByNothing for one quota of all requests`,
		`weirhttp: policy "p": MaxKeys is -5, must be at least 1 (or 0 for the default)`,
		`weirhttp: policy "p": Name is used twice, must be unique`,
	}, "\n"))
}
