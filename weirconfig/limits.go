package weirconfig

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-go/weir/weirhttp"
)

// UnmarshalText reads the name of a key function.
func (k *keyFunc) UnmarshalText(text []byte) error {
	header, isHeader := strings.CutPrefix(string(text), "header:")
	switch {
	case isHeader && header != "":
		k.by = weirhttp.ByHeader(header)
	case string(text) == "ip":
		k.by = weirhttp.ByIP
	case string(text) == "route":
		k.by = weirhttp.ByRoute(nil)
	case string(text) == "nothing":
		k.by = weirhttp.ByNothing
	default:
		return fmt.Errorf("must be %s", k.form())
	}
	return nil
}

func (k *keyFunc) form() string { return "ip, route, nothing, or header:NAME such as header:X-Api-Key" }

// config returns the policy with its key function.
func (p policy) config() weirhttp.Policy {
	c := p.Policy
	var keys []func(*http.Request) string
	for _, k := range p.By {
		keys = append(keys, k.by)
	}
	switch len(keys) {
	case 0:
	case 1:
		c.By = keys[0]
	default:
		c.By = weirhttp.Combine(keys...)
	}
	return c
}

// config returns the config of the limit.
func (l limit) config() weirhttp.LimitConfig {
	c := l.LimitConfig
	for _, p := range l.Policies {
		c.Policies = append(c.Policies, p.config())
	}
	return c
}

func (d *decoder) checkLimits(doc *document) {
	for _, name := range slices.Sorted(maps.Keys(doc.Limits)) {
		path, l := "limits."+quotedKey(name), doc.Limits[name]
		d.addInvalid(path+".proxies", reflect.TypeFor[weirhttp.Proxies](), weirhttp.LimitConfig{Proxies: l.Proxies}.Validate(), "Proxies.")
		for i, p := range l.Policies {
			at := fmt.Sprintf("%s.policies[%d]", path, i)
			c := p.config()
			if c.By == nil {
				d.addMissing(at, "by")
				c.By = weirhttp.ByNothing
			}
			err := weirhttp.LimitConfig{Policies: []weirhttp.Policy{c}}.Validate()
			d.addInvalid(at, reflect.TypeFor[policy](), err, fmt.Sprintf("policy %q: ", p.Name))
		}
	}
}
