package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// answered says what an answer means for the delivery.
func answered(r *http.Response, now time.Time) error {
	if r.StatusCode >= 200 && r.StatusCode <= 299 {
		return nil
	}
	verdict := &alert.DeliveryError{Err: fmt.Errorf("status %d %s", r.StatusCode, http.StatusText(r.StatusCode))}
	switch {
	case r.StatusCode >= 500:
		verdict.Kind, verdict.Pause = alert.ServerError, retryAfter(r.Header, now)
	case again(r.StatusCode):
		verdict.Kind, verdict.Pause = alert.ClientError, retryAfter(r.Header, now)
	case r.StatusCode >= 400:
		verdict.Kind, verdict.Refused = alert.ClientError, true
	default:
		verdict.Refused = true
	}
	return verdict
}

// again says which client errors are about the moment, not about the request.
func again(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	}
	return false
}

// retryAfter reads a Retry-After header in either of its forms (RFC 9110, 10.2.3). A
// date is taken against the server's own, where it gives one, and so is blind to a
// difference between the clocks.
func retryAfter(h http.Header, now time.Time) time.Duration {
	field := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(field, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	if servers, err := http.ParseTime(h.Get("Date")); err == nil {
		now = servers
	}
	return max(until.Sub(now), 0)
}

// unanswered says why no answer came. The error itself is left behind: its text
// holds the URL, or the host and address that it led to.
func unanswered(ctx context.Context, err error) error {
	verdict := &alert.DeliveryError{Kind: alert.Unreachable, Err: errors.New("no connection")}
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		verdict.Kind, verdict.Err = alert.Timeout, errors.New("no answer in time")
	case errors.As(err, &errno):
		verdict.Err = errno
	case isA[*net.DNSError](err):
		verdict.Err = errors.New("the host's name is not known")
	case isA[*tls.CertificateVerificationError](err), isA[tls.RecordHeaderError](err), isA[tls.AlertError](err):
		verdict.Err = errors.New("no secure connection")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		verdict.Err = errors.New("the connection was closed")
	}
	return verdict
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// classify is what an attempt says about the server to the breaker before it. A
// server that refuses an alert is well; one that asks for patience says nothing.
func classify(err error) breaker.Outcome {
	verdict, ok := errors.AsType[*alert.DeliveryError](err)
	switch {
	case !ok:
		return breaker.DefaultClassify(err)
	case verdict.Permanent, verdict.Refused:
		return breaker.Success
	case verdict.Kind == alert.ClientError:
		return breaker.Ignored
	}
	return breaker.Failure
}
