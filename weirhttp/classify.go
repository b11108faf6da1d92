package weirhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-go/weir/breaker"
)

// DefaultClassify is the verdict on a response, or on the error in its place, where
// TransportConfig.Classify is not set: an error is judged by [breaker.DefaultClassify]; a
// status of 429 (too many requests) or from 500 on is a failure; all others are
// successes, a 404 among them, for the service has done its work.
func DefaultClassify(resp *http.Response, err error) breaker.Outcome {
	if err != nil {
		return breaker.DefaultClassify(err)
	}
	return verdictOn(resp)
}

func verdictOn(resp *http.Response) breaker.Outcome {
	if resp == nil || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		return breaker.Failure
	}
	return breaker.Success
}

// gaveUp reports whether the caller has cancelled the call. What became of it then tells
// nothing, however the error is worded: HTTP/2 may speak of a stream that was reset. A
// deadline that passed is no giving up.
func gaveUp(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// sendable reports whether an http.Transport would send the request at all. Of one
// with a header that holds a line break the host never hears.
func sendable(req *http.Request) bool {
	return req.URL != nil && req.Header != nil && req.URL.Host != "" &&
		(req.Method == "" || isToken(req.Method)) && areFields(req.Header) && areFields(req.Trailer)
}

func areFields(h http.Header) bool {
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

func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}
