package notify

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
)

// Off turns Config.Repeat off.
const Off = -1

// Config configures a notifier. Notifiers never show their URL or Header.
type Config struct {
	// Name is the name of the notifier and its breaker in metrics and logs. The notifiers of one
	// program need different names. Default the kind: "webhook", "slack", "teams", "pagerduty" or
	// "alertmanager".
	Name string
	// URL is the http or https address of the server. Required, except for PagerDuty.
	URL Secret
	// Header is sent with each request, for example for authorization. Default none.
	Header map[string]Secret
	// Repeat is how often a firing alert is sent again. Off sends it once. Default 4h, and 1m for
	// Alertmanager, which resolves alerts that are not repeated.
	Repeat time.Duration
	// Transport sends the requests. Default a copy of http.DefaultTransport.
	Transport http.RoundTripper
	// Breaker configures the breaker of the server. Default that of package breaker, with these
	// differences, because alerts are rare: MinCalls 5, Window 1m, Cooldown 15s, Probes 1, Recovery
	// Off, and a Classify that counts a refusal by the receiver as a success.
	Breaker breaker.Config
}

// Validate returns an error that names every invalid field, or nil. The error does not show the
// URL.
func (c Config) Validate() error {
	var errs []error
	u, err := url.Parse(string(c.URL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, errors.New("notify: URL (not shown) must be absolute, with scheme http or https"))
	}
	if !validHeader(c.Header) {
		errs = append(errs, errors.New("notify: Header (not shown) has a name or a value that cannot be sent, such as one with a line break"))
	}
	if c.Repeat < Off {
		errs = append(errs, fmt.Errorf("notify: Repeat is %v, must be at least 0, or Off", c.Repeat))
	}
	if err := breakerConfig(c.Breaker).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("notify: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

// validHeader reports whether HTTP can send the header (RFC 9110, section 5).
func validHeader(h map[string]Secret) bool {
	for name, value := range h {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune("!#$%&'*+-.^_`|~", r) && (r > 'z' || r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a')
		}) {
			return false
		}
		for i := range len(value) {
			if b := value[i]; b < ' ' && b != '\t' || b == 0x7f {
				return false
			}
		}
	}
	return true
}

// breakerConfig returns Config.Breaker with the defaults of this package.
func breakerConfig(b breaker.Config) breaker.Config {
	b.MinCalls = cmp.Or(b.MinCalls, 5)
	if b.LastCalls == 0 {
		b.Window = cmp.Or(b.Window, time.Minute)
	}
	b.Cooldown = cmp.Or(b.Cooldown, 15*time.Second)
	b.Probes = cmp.Or(b.Probes, 1)
	b.Recovery = cmp.Or(b.Recovery, breaker.Off)
	if b.Classify == nil {
		b.Classify = classifyDelivery
	}
	return b
}

func defaultTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		copied := t.Clone()
		copied.MaxResponseHeaderBytes = 64 << 10
		return copied
	}
	return http.DefaultTransport
}
