package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// endpoint is the server of a notifier and its breaker.
type endpoint struct {
	name    string
	repeat  time.Duration
	target  func() (url string, header http.Header) // a closure, whose contents fmt cannot print
	client  *http.Client
	breaker *breaker.Breaker
}

// newEndpoint returns the endpoint at c.URL, with the path appended. kind is the default name, and
// repeat the default of c.Repeat.
func newEndpoint(c Config, kind string, repeat time.Duration, path ...string) *endpoint {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault(kind, repeat)
	address := c.URL
	if len(path) > 0 {
		base, _ := url.Parse(c.URL) // Validate has parsed it
		address = base.JoinPath(path...).String()
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &endpoint{
		name: c.Name, repeat: c.Repeat,
		target:  func() (string, http.Header) { return address, c.Header },
		client:  &http.Client{Transport: c.Transport, CheckRedirect: noRedirect},
		breaker: breaker.New(c.Name, c.Breaker),
	}
}

// Name returns Config.Name or its default.
func (e *endpoint) Name() string { return e.name }

// Repeat returns how often firing alerts are sent again, or 0 for never.
func (e *endpoint) Repeat() time.Duration { return e.repeat }

// Breaker returns the breaker of the server, for an exporter or a rule.
func (e *endpoint) Breaker() *breaker.Breaker { return e.breaker }

// Format prints only the name, for every verb.
func (e *endpoint) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "notifier %q", e.name) }

// post sends a message as JSON unless the breaker refuses. header returns the headers for the body;
// it may be nil.
func (e *endpoint) post(ctx context.Context, message any, header func(body []byte) http.Header) error {
	body, err := json.Marshal(message)
	if err != nil {
		return &alert.DeliveryError{Permanent: true, Err: errors.New("the alert cannot be encoded as JSON")}
	}
	var extra http.Header
	if header != nil {
		extra = header(body)
	}
	err = e.breaker.Run(ctx, func(ctx context.Context) error { return e.send(ctx, body, extra) })
	if open, refused := errors.AsType[*breaker.OpenError](err); refused {
		return &alert.DeliveryError{Kind: "breaker_open", Pause: open.RetryAfter(), Err: err}
	}
	return err
}

// maxAttempt bounds an attempt if ctx has no deadline. That of a Monitor always has one.
const maxAttempt = 30 * time.Second

func (e *endpoint) send(ctx context.Context, body []byte, extra http.Header) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxAttempt)
		defer cancel()
	}
	address, configured := e.target()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &alert.DeliveryError{Permanent: true, Err: errors.New("the request cannot be created")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "weir")
	for _, h := range []http.Header{configured, extra} {
		for key, values := range h {
			request.Header[http.CanonicalHeaderKey(key)] = values
		}
	}
	response, err := e.client.Do(request)
	if err != nil {
		return transportError(ctx, err)
	}
	defer response.Body.Close()
	// Reading the body to its end lets the connection be reused.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	return statusError(response, time.Now())
}
