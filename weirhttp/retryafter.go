package weirhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// retryAfter returns for how long a response of status 429 or 503 asks not to be called
// again, and 0 where it does not. It believes the first of these that says something:
//
//   - Retry-After, in seconds or as a date, which is compared with the response's own Date;
//   - RateLimit, as in draft-ietf-httpapi-ratelimit-headers-10: the longest t of the items
//     with r=0;
//   - RateLimit-Reset and X-RateLimit-Reset, in seconds, as a Unix time or as a date, where
//     the Remaining beside it is 0 or missing.
//
// What is malformed, negative or in the past counts as not said. The wait is not bounded:
// a server may ask for a hundred years.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	h := resp.Header
	if d := moment(h.Get("Retry-After"), h); d > 0 {
		return d
	}
	if d := quotaReset(h.Values("RateLimit")); d > 0 {
		return d
	}
	for _, prefix := range []string{"Ratelimit-", "X-Ratelimit-"} {
		if left := h.Get(prefix + "Remaining"); left == "" || left == "0" {
			if d := moment(h.Get(prefix+"Reset"), h); d > 0 {
				return d
			}
		}
	}
	return 0
}

// moment returns how far ahead a moment lies, below 0 for one that has passed, which is given in seconds from now, as a
// Unix time in seconds, or as a date. No wait is as long as the shortest Unix time that
// makes sense, which lies in 2001.
func moment(s string, h http.Header) time.Duration {
	n, ok := digits(s)
	if ok && n < 1e9 {
		return time.Duration(n) * time.Second
	}
	at := time.Unix(n, 0)
	if !ok {
		at, _ = http.ParseTime(s) // the year 1 for what is none
	}
	return at.Sub(serverTime(h))
}

// serverTime is what time it is for the server, whose clock may differ from ours.
func serverTime(h http.Header) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return time.Now()
}

// digits reads a number that has neither sign nor point.
func digits(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// quotaReset returns the longest t of the items with r=0 in the lines of a RateLimit field,
// and 0 where one is malformed.
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
			if t, ok := digits(params["t"]); ok && params["r"] == "0" {
				longest = max(longest, time.Duration(min(t, maxSeconds))*time.Second)
			}
		}
	}
	return longest
}

const (
	maxList    = 4096 // bytes of a list of quotas that are looked at
	maxSeconds = math.MaxInt64 / int64(time.Second)
)
