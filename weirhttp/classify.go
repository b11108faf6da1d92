package weirhttp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
)

// DefaultClassify returns the outcome of a call by its response or, if err is not nil, by its
// error. The status 429 (too many requests), and 503 with a Retry-After, are the service's own word
// that it is overloaded: breaker.Overloaded. All other status codes from 500 on are failures, and
// the rest are successes: a service that answers 404 works. For errors see
// [breaker.DefaultClassify].
func DefaultClassify(resp *http.Response, err error) breaker.Outcome {
	if err != nil {
		return breaker.DefaultClassify(err)
	}
	return classifyResponse(resp)
}

func classifyResponse(resp *http.Response) breaker.Outcome {
	switch {
	case resp == nil:
		return breaker.Failure
	case resp.StatusCode == http.StatusTooManyRequests,
		resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return breaker.Overloaded
	case resp.StatusCode >= http.StatusInternalServerError:
		return breaker.Failure
	}
	return breaker.Success
}

// cancelled reports whether the caller has cancelled the call. The error does not always say so:
// HTTP/2 may report a stream that was reset. A deadline that has passed does not count.
func cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// sendable reports whether an http.Transport would send the request. It does not send, for example,
// a request with a line break in a header.
func sendable(req *http.Request) bool {
	return req.URL != nil && req.Header != nil && req.URL.Host != "" &&
		(req.Method == "" || isToken(req.Method)) && validFields(req.Header) && validFields(req.Trailer)
}

func validFields(h http.Header) bool {
	for name, values := range h {
		if !isToken(name) {
			return false
		}
		for _, v := range values {
			if !isFieldValue(v) {
				return false
			}
		}
	}
	return true
}

func isFieldValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// isToken reports whether s is a token of HTTP.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, alnum+"!#$%&'*+-.^_`|~") == ""
}

// retryAfter returns how long a response with status 429 or 503 asks clients to wait, or 0 if it
// does not. The first of these headers that has a wait counts:
//
//   - Retry-After has seconds, or a date that is compared with the Date of the response.
//   - RateLimit is that of draft-ietf-httpapi-ratelimit-headers-10. The wait is the longest t of
//     its items with r=0.
//   - RateLimit-Reset and X-RateLimit-Reset have seconds, a Unix time or a date. Each of them
//     counts only if the header of the same name, but with Remaining in place of Reset, is 0 or
//     missing.
//
// A malformed header, a negative wait and a time in the past are ignored. The wait is not limited:
// a server may ask for a hundred years.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	h := resp.Header
	if d := untilTime(h.Get("Retry-After"), h); d > 0 {
		return d
	}
	if d := quotaReset(h.Values("RateLimit")); d > 0 {
		return d
	}
	for _, prefix := range []string{"Ratelimit-", "X-Ratelimit-"} {
		if left := h.Get(prefix + "Remaining"); left == "" || left == "0" {
			if d := untilTime(h.Get(prefix+"Reset"), h); d > 0 {
				return d
			}
		}
	}
	return 0
}

// untilTime returns the time until the moment in the text s: seconds from now, a Unix time in
// seconds, or a date. It is negative if the moment has passed. A number from 1e9 on is taken as a
// Unix time, in 2001 or later.
func untilTime(s string, h http.Header) time.Duration {
	n, ok := parseDigits(s)
	if ok && n < 1e9 {
		return time.Duration(n) * time.Second
	}
	at := time.Unix(n, 0)
	if !ok {
		at, _ = http.ParseTime(s) // in the year 1 if s is not a date
	}
	return at.Sub(serverTime(h))
}

// serverTime returns the time of the server's clock, which may differ from the local one.
func serverTime(h http.Header) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return time.Now()
}

// parseDigits parses a number without a sign and a decimal point.
func parseDigits(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// quotaReset returns the longest t of the items with r=0 in the lines of RateLimit, or 0 if a line
// is malformed.
func quotaReset(lines []string) (longest time.Duration) {
	length := 0
	for _, line := range lines {
		if length += len(line); length > maxList {
			return 0
		}
		items, ok := parseItems(line)
		if !ok {
			return 0
		}
		for _, params := range items {
			if t, ok := parseDigits(params["t"]); ok && params["r"] == "0" {
				longest = max(longest, time.Duration(min(t, maxSeconds))*time.Second)
			}
		}
	}
	return longest
}

const (
	maxList    = 4096 // bytes of RateLimit; longer fields are ignored
	maxSeconds = math.MaxInt64 / int64(time.Second)
)
