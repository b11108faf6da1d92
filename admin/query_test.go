package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// A key that does not arrive as it was meant must not turn an action on one key into one on all.
func TestAnActionOnAllKeysSaysSo(t *testing.T) {
	for _, c := range []struct {
		query  string
		status int
		text   string
	}{
		{"name=hosts&key=50%off", 400, `invalid URL escape "%of": write %25 for %`},
		{"name=hosts&key=%zz", 400, "the query is not valid"},
		{"name=hosts&key=a;b", 400, "invalid semicolon separator"},
		{"name=hosts&key=a&b", 400, `no parameter "b"`},
		{"name=hosts&key=", 400, "key is empty"},
		{"name=hosts&key", 400, "key is empty"},
		{"name=hosts", 400, `the gate_group "hosts" has keys: add key=… for one of them, or all=true for all of them`},
		{"name=hosts&all", 400, "all is empty"},
		{"name=hosts&all=1", 400, `all is "1" in the query, must be true`},
		{"name=hosts&all=true&key=a", 400, "both key and all"},
		{"name=hosts&all=true&key=", 400, "key is empty"},
		{"name=hosts&kind=", 400, "kind is empty"},
		{"name=hosts&kind=gates&all=true", 404, `there is no gates "hosts"`},
		{"name=one&all=true", 400, "is not a group and has no keys"},
		{"name=hosts&key=*", 404, `no key "*" now`},
		{"name=hosts&all=true", 200, ""},
		{"name=hosts&key=50%25off", 200, ""},
	} {
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
		state := func(key string) breaker.State { return hosts.Get(key).Breaker().State() }
		for _, key := range []string{"other", "", "50%off", "a;b", "a"} {
			state(key)
		}
		k := newHandlerTest(t, hosts, weir.New("one", weir.Config{}))
		a := k.send(http.MethodPost, "/force", `{"state":"open"}`, func(r *http.Request) { r.URL.RawQuery = c.query })
		require.Equal(t, c.status, a.Status, "%s: %s", c.query, a.Error)
		require.Contains(t, a.Error, c.text)
		want := breaker.Closed
		if c.query == "name=hosts&all=true" {
			want = breaker.ForcedOpen
		}
		require.Equal(t, want, state("other"), c.query)
	}
}

// Requests that only read are as strict.
func TestAFilterOfMembersIsNotDropped(t *testing.T) {
	k := newHandlerTest(t, weir.NewGroup[string]("hosts", weir.GroupConfig{}))
	for query, text := range map[string]string{
		"name=hosts&state=": "state is empty", "name=hosts&state=opne": `state is "opne"`, "name=hosts&state=%": "not valid",
	} {
		a := k.send(http.MethodGet, "/members", "", func(r *http.Request) { r.URL.RawQuery = query })
		require.Equal(t, 400, a.Status, query)
		require.Contains(t, a.Error, text)
	}
}

// Two keys can have the same text. Then an action on one of them is refused.
func TestKeysWithTheSameTextAreNotConfused(t *testing.T) {
	type key struct{ host, path string }
	hosts := breaker.NewGroup[key]("hosts", breaker.GroupConfig{})
	first, second := hosts.Get(key{"a", "b c"}), hosts.Get(key{"a b", "c"})
	k := newHandlerTest(t, hosts)
	k.requireRefused(409, `2 keys of the breaker_group "hosts" have the text "{a b c}"`, "/force?name=hosts&key=%7Ba+b+c%7D", `{"state":"open"}`)
	require.Equal(t, breaker.Closed, first.State())
	require.Equal(t, breaker.Closed, second.State())
}
