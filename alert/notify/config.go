package notify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weir-go/weir/breaker"
)

// Off turns Config.Repeat off.
const Off = -1

// Config configures a notifier. A Config is printed, logged and marshalled without its URL and its
// header. But fmt calls no method of a value in an unexported field: keep a Config that may be
// printed as part of another struct in an exported field. The notifiers show neither in any form.
type Config struct {
	// Name is the name of the notifier, and of its breaker, in metrics and logs. Notifiers of one
	// program need different names. Default the kind: "webhook", "slack" or "alertmanager".
	Name string
	// URL is the address of the server, http or https. Required.
	URL string
	// Header is sent with each request, for authorization for instance. Default none.
	Header http.Header
	// Repeat is how often an alert that continues to fire is sent again. Off sends it once. Default
	// 4h, and 1m for Alertmanager, which takes an alert that is not repeated for resolved.
	Repeat time.Duration
	// Transport makes the requests. Default one of its own, with the settings of
	// http.DefaultTransport.
	Transport http.RoundTripper
	// Breaker configures the breaker before the server. As alerts are rare, its defaults differ from
	// those of package breaker: MinCalls 5, Window 1m, Cooldown 15s, Probes 1, and a Classify to
	// which a refusal of the receiver is a success.
	Breaker breaker.Config
}

// Validate returns an error that names every field that makes no sense, and nil
// where there is none. It does not show the URL.
func (c Config) Validate() error {
	var errs []error
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, errors.New("notify: URL is not shown here, must be absolute and http or https"))
	}
	if c.Repeat < Off {
		errs = append(errs, fmt.Errorf("notify: Repeat is %v, must be at least 0, or Off", c.Repeat))
	}
	if err := c.guard().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("notify: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

// Format prints c without its URL and its header, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.masked()) }

// MarshalText returns the printed form of c, without its URL and its header.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.masked()), nil }

func (c Config) masked() string { return fmt.Sprintf("notify.Config{Name: %q, …}", c.Name) }

func (c Config) orDefault(kind string, repeat time.Duration) Config {
	c.Name = cmp.Or(c.Name, kind)
	c.Header = c.Header.Clone()
	c.Repeat = max(cmp.Or(c.Repeat, repeat), 0)
	if c.Transport == nil {
		c.Transport = ownTransport()
	}
	c.Breaker = c.guard()
	return c
}

// guard is the config of the breaker before the server.
func (c Config) guard() breaker.Config {
	b := c.Breaker
	b.MinCalls = cmp.Or(b.MinCalls, 5)
	if b.LastCalls == 0 {
		b.Window = cmp.Or(b.Window, time.Minute)
	}
	b.Cooldown = cmp.Or(b.Cooldown, 15*time.Second)
	b.Probes = cmp.Or(b.Probes, 1)
	if b.Classify == nil {
		b.Classify = classify
	}
	return b
}

func ownTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own := t.Clone()
		own.MaxResponseHeaderBytes = 64 << 10
		return own
	}
	return http.DefaultTransport
}
