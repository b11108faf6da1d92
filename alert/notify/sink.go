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

// sink is what the notifiers of this package share: one server behind one breaker.
type sink struct {
	name    string
	repeat  time.Duration
	target  func() (url string, header http.Header) // a function, since fmt shows all but these
	client  *http.Client
	breaker *breaker.Breaker
}

// newSink returns the sink at the URL of the config, with the path appended.
func newSink(c Config, kind string, repeat time.Duration, path ...string) *sink {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault(kind, repeat)
	address := c.URL
	if len(path) > 0 {
		base, _ := url.Parse(c.URL) // was parsed by Validate
		address = base.JoinPath(path...).String()
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sink{
		name: c.Name, repeat: c.Repeat,
		target:  func() (string, http.Header) { return address, c.Header },
		client:  &http.Client{Transport: c.Transport, CheckRedirect: stay},
		breaker: breaker.New(c.Name, c.Breaker),
	}
}

// longestAttempt bounds an attempt whose caller has set no bound.
const longestAttempt = 30 * time.Second

// Name returns the name that the config gave.
func (s *sink) Name() string { return s.name }

// Repeat returns how often firing alerts are sent again, 0 for never.
func (s *sink) Repeat() time.Duration { return s.repeat }

// Breaker returns the breaker before the server, for an exporter or a rule.
func (s *sink) Breaker() *breaker.Breaker { return s.breaker }

// Format prints the name alone, whatever the verb.
func (s *sink) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "notifier %q", s.name) }

// post sends one message, if the breaker lets it. The header, which may be nil, is made
// for the body.
func (s *sink) post(ctx context.Context, message any, header func(body []byte) http.Header) error {
	body, err := json.Marshal(message)
	if err != nil {
		return &alert.DeliveryError{Permanent: true, Err: errors.New("the alert cannot be written as JSON")}
	}
	var more http.Header
	if header != nil {
		more = header(body)
	}
	err = s.breaker.Run(ctx, func(ctx context.Context) error { return s.attempt(ctx, body, more) })
	if open, refused := errors.AsType[*breaker.OpenError](err); refused {
		return &alert.DeliveryError{Kind: alert.BreakerOpen, Pause: open.RetryAfter(), Err: err}
	}
	return err
}

func (s *sink) attempt(ctx context.Context, body []byte, header http.Header) error {
	if _, bounded := ctx.Deadline(); !bounded { // a Monitor's always is
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longestAttempt)
		defer cancel()
	}
	address, own := s.target()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &alert.DeliveryError{Permanent: true, Err: errors.New("the request cannot be made")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "weir")
	for _, h := range []http.Header{own, header} {
		for key, values := range h {
			request.Header[http.CanonicalHeaderKey(key)] = values
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer response.Body.Close()
	// What is read to its end leaves a connection that can be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	return answered(response, time.Now())
}
