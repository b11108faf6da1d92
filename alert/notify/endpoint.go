package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// endpoint is a receiver that is reached over HTTP.
type endpoint struct {
	receiver
	// a closure, whose contents fmt cannot print
	target func() (url string, header map[string]Secret)
	client *http.Client
	// keeps the rate that the receiver documents; nil: it documents none
	pace *limiter.TokenBucket

	pauseAfter429 time.Duration // the shortest pause after the status Too Many Requests
}

// newEndpoint returns the endpoint at c.URL, with the path appended. kind is the default name, and
// repeat the default of c.Repeat.
func newEndpoint(c Config, kind string, repeat time.Duration, path ...string) *endpoint {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	address, header := string(c.URL), maps.Clone(c.Header)
	if len(path) > 0 {
		base, _ := url.Parse(address) // Validate has parsed it
		address = base.JoinPath(path...).String()
	}
	if c.Transport == nil {
		c.Transport = defaultTransport()
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &endpoint{
		receiver: newReceiver(cmp.Or(c.Name, kind), cmp.Or(c.Repeat, repeat), c.Breaker),
		target:   func() (string, map[string]Secret) { return address, header },
		client:   &http.Client{Transport: c.Transport, CheckRedirect: noRedirect},
	}
}

// url returns the address of the server.
func (e *endpoint) url() string {
	address, _ := e.target()
	return address
}

// encode returns the message as JSON.
func encode(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, &alert.DeliveryError{Permanent: true, Err: errors.New("the alert cannot be encoded as JSON")}
	}
	return body, nil
}

// fitMessage returns a message of at most limit bytes, or the shortest one that build can make.
// build returns the message with texts of at most n characters.
func fitMessage(limit int, build func(n int) any) ([]byte, error) {
	for n := 4096; ; n /= 2 {
		body, err := encode(build(n))
		if err != nil || len(body) <= limit || n == 1 {
			return body, err
		}
	}
}

// post sends a body to the address, unless the breaker refuses. It first waits if the rate of the
// receiver requires it.
func (e *endpoint) post(ctx context.Context, address string, body []byte, extra http.Header) error {
	if err := e.keepRate(ctx); err != nil {
		return err
	}
	return attempt(ctx, e.breaker, func(ctx context.Context) error { return e.send(ctx, address, body, extra) })
}

// maxAttemptTime bounds an attempt if ctx has no deadline. The ctx of a Monitor always has a
// deadline.
const maxAttemptTime = 30 * time.Second

// attempt calls send with a ctx that has a deadline, unless the breaker refuses.
func attempt(ctx context.Context, b *breaker.Breaker, send func(ctx context.Context) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxAttemptTime)
		defer cancel()
	}
	err := b.Run(ctx, send)
	if open, refused := errors.AsType[*breaker.OpenError](err); refused {
		return &alert.DeliveryError{Kind: "breaker_open", Pause: open.RetryAfter(), Err: err}
	}
	return err
}

// keepRate waits until the receiver's rate allows one more request.
func (e *endpoint) keepRate(ctx context.Context) error {
	if e.pace == nil {
		return nil
	}
	err := e.pace.Wait(ctx, 1)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	}
	return &alert.DeliveryError{Err: fmt.Errorf("the rate of the receiver does not allow it yet: %w", err)}
}

// maxBodyTime is how long the body of an answer is read.
const maxBodyTime = 250 * time.Millisecond

func (e *endpoint) send(ctx context.Context, address string, body []byte, extra http.Header) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, configured := e.target()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &alert.DeliveryError{Permanent: true, Err: errors.New("the request cannot be created")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "weir")
	for key, value := range configured {
		request.Header.Set(key, string(value))
	}
	maps.Copy(request.Header, extra)
	response, err := e.client.Do(request)
	if err != nil {
		return transportError(ctx, err)
	}
	defer response.Body.Close()
	// Reading the body to its end lets the connection be reused. The status has the answer, so a
	// body that does not end delays nothing.
	defer time.AfterFunc(maxBodyTime, cancel).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	err = statusError(response, time.Now())
	if failed, ok := errors.AsType[*alert.DeliveryError](err); ok && response.StatusCode == http.StatusTooManyRequests {
		failed.Pause = max(failed.Pause, e.pauseAfter429)
	}
	return err
}
