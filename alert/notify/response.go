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
	"strings"
	"syscall"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// kindClientError is the DeliveryError.Kind of a status from 400 to 499.
const kindClientError = "http_4xx"

// statusError returns nil for a status 2xx, and a *alert.DeliveryError otherwise.
func statusError(r *http.Response, now time.Time) error {
	if r.StatusCode >= 200 && r.StatusCode <= 299 {
		return nil
	}
	failed := &alert.DeliveryError{Err: fmt.Errorf("status %d %s", r.StatusCode, http.StatusText(r.StatusCode))}
	switch {
	case r.StatusCode >= 500:
		failed.Kind, failed.Pause = "http_5xx", retryAfter(r.Header, now)
	case isTemporary(r.StatusCode):
		failed.Kind, failed.Pause = kindClientError, retryAfter(r.Header, now)
	case r.StatusCode >= 400:
		failed.Kind, failed.Refused = kindClientError, true
	default:
		failed.Refused = true
	}
	return failed
}

// isTemporary reports whether a client error concerns the time of the request, not its contents.
func isTemporary(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	}
	return false
}

// maxRetryAfter is the longest Retry-After in seconds. A Monitor waits for at most an hour.
const maxRetryAfter = 1 << 31

// retryAfter parses a Retry-After header, which holds seconds or a date (RFC 9110, section 10.2.3).
// A date is compared with the Date header if there is one, so that the clocks of the server and of
// this host need not agree.
func retryAfter(h http.Header, now time.Time) time.Duration {
	field := h.Get("Retry-After")
	seconds, err := strconv.ParseUint(field, 10, 63)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, maxRetryAfter)) * time.Second
	}
	until, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(until.Sub(now), 0)
}

// transportError returns why there is no response. It does not wrap err, whose text has the URL or
// the address of the host.
func transportError(ctx context.Context, err error) error {
	failed := &alert.DeliveryError{Kind: "unreachable", Err: errors.New("no connection")}
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		failed.Kind, failed.Err = "timeout", errors.New("no answer in time")
	case strings.Contains(err.Error(), "response headers exceeded"): // net/http has no type for it
		failed.Kind, failed.Err = "", errors.New("the headers of the answer are too long")
	case errors.As(err, &errno):
		failed.Err = errno
	case hasErrorOfType[*net.DNSError](err):
		failed.Err = errors.New("unknown host name")
	case hasErrorOfType[*tls.CertificateVerificationError](err), hasErrorOfType[tls.RecordHeaderError](err), hasErrorOfType[tls.AlertError](err):
		failed.Err = errors.New("no secure connection")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		failed.Err = errors.New("connection closed")
	}
	return failed
}

func hasErrorOfType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// classifyDelivery classifies an attempt for the breaker. A server that refuses an alert is
// healthy. A client error that is temporary says nothing about the server.
func classifyDelivery(err error) breaker.Outcome {
	failed, ok := errors.AsType[*alert.DeliveryError](err)
	switch {
	case !ok:
		return breaker.DefaultClassify(err)
	case failed.Permanent, failed.Refused:
		return breaker.Success
	case failed.Kind == kindClientError:
		return breaker.Ignored
	}
	return breaker.Failure
}
