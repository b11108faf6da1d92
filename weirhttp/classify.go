package weirhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"

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
