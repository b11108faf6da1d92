package weirhttp_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestPolicySaysWhatIsWrong(t *testing.T) {
	good := weirhttp.Policy{Name: "p", Limit: 1, Span: time.Second}
	for _, c := range []struct {
		change func(*weirhttp.Policy)
		want   string
	}{
		{func(p *weirhttp.Policy) { p.Name = "" }, `weirhttp: policy "": Name has 0 bytes, must be 1 to 64 printable ASCII characters without " and \`},
		{func(p *weirhttp.Policy) { p.Name = `a"b` }, `Name has 3 bytes`},
		{func(p *weirhttp.Policy) { p.Name = "tägig" }, `Name has 6 bytes`},
		{func(p *weirhttp.Policy) { p.Name = strings.Repeat("n", 65) }, `Name has 65 bytes`},
		{func(p *weirhttp.Policy) { p.Limit = 0 }, `weirhttp: policy "p": Limit is 0, must lie between 1 and 1000000000`},
		{func(p *weirhttp.Policy) { p.Limit = 1e9 + 1 }, `Limit is 1000000001`},
		{func(p *weirhttp.Policy) { p.Span = 0 }, `weirhttp: policy "p": Span is 0s, must lie between 1ms and 8784h0m0s`},
		{func(p *weirhttp.Policy) { p.Span = 367 * 24 * time.Hour }, `Span is 8808h0m0s`},
		{func(p *weirhttp.Policy) { p.Burst = -1 }, `weirhttp: policy "p": Burst is -1, must lie between 1 and 1000000000 (or 0 for the default)`},
		{func(p *weirhttp.Policy) { p.By = 8 }, `weirhttp: policy "p": By is 8, must be joined of ByIP, ByClient and ByRoute`},
		{func(p *weirhttp.Policy) { p.Only = []weirhttp.Match{{}} }, `weirhttp: policy "p": Only[0] selects by nothing, must name networks, clients or routes`},
		{func(p *weirhttp.Policy) { p.Except = []weirhttp.Match{{Networks: []netip.Prefix{{}}}} }, `weirhttp: policy "p": Except[0]: Networks: invalid Prefix is no network`},
		{func(p *weirhttp.Policy) { p.MaxKeys = -1 }, `weirhttp: policy "p": limiter: MaxKeys is -1`},
		{func(p *weirhttp.Policy) { p.Overflow = limiter.ShareNew + 1 }, `weirhttp: policy "p": limiter: Overflow is 3`},
	} {
		p := good
		c.change(&p)
		err := p.Validate()
		require.ErrorContains(t, err, c.want)
		require.PanicsWithError(t, err.Error(), func() { weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}) })
	}
	require.NoError(t, good.Validate())
	require.NoError(t, weirhttp.LimitConfig{}.Validate())
}

func TestLimitConfigSaysWhatIsWrong(t *testing.T) {
	p := weirhttp.Policy{Name: "p", Limit: 1, Span: time.Second}
	byClient := p
	byClient.By = weirhttp.ByClient
	forClient := p
	forClient.Only = []weirhttp.Match{{Clients: []string{"c"}}}
	const noClient = "weirhttp: Client is nil, must say who makes a request where a policy asks for clients"
	for _, c := range []struct {
		config weirhttp.LimitConfig
		want   string
	}{
		{weirhttp.LimitConfig{Policies: []weirhttp.Policy{p, p}}, `weirhttp: policy "p": Name is given to two policies, must be of one`},
		{weirhttp.LimitConfig{Policies: []weirhttp.Policy{byClient}}, noClient},
		{weirhttp.LimitConfig{Policies: []weirhttp.Policy{forClient}}, noClient},
		{weirhttp.LimitConfig{Exempt: []weirhttp.Match{{Clients: []string{"c"}}}}, noClient},
		{weirhttp.LimitConfig{Exempt: []weirhttp.Match{{}}}, "weirhttp: Exempt[0] selects by nothing, must name networks, clients or routes"},
		{weirhttp.LimitConfig{Proxies: weirhttp.Proxies{Trusted: []netip.Prefix{{}}}}, "weirhttp: Proxies.Trusted: invalid Prefix is no network"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { weirhttp.NewLimit(c.config) })
		c.config.Client = func(*http.Request) string { return "" }
		if c.want == noClient {
			require.NoError(t, c.config.Validate())
		}
	}
}
