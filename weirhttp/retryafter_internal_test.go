package weirhttp

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// newHeader returns a header made of pairs of names and values.
func newHeader(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const date = "Sat, 01 Jan 2000 00:00:00 GMT"

// retryAfterCases are responses, and how long to wait before retrying.
var retryAfterCases = []struct {
	name   string
	status int
	header http.Header
	want   time.Duration
}{
	{"seconds", 429, newHeader("Retry-After", "7"), 7 * time.Second},
	{"seconds", 503, newHeader("Retry-After", "120"), 2 * time.Minute},
	{"nothing said", 503, newHeader(), 0},
	{"no hurry, but no refusal", 200, newHeader("Retry-After", "7", "RateLimit", `"a";r=0;t=9`), 0},
	{"a redirect", 301, newHeader("Retry-After", "7"), 0},
	{"other failures", 500, newHeader("Retry-After", "7"), 0},
	{"zero", 429, newHeader("Retry-After", "0"), 0},
	{"negative", 429, newHeader("Retry-After", "-5"), 0},
	{"a float", 429, newHeader("Retry-After", "1e99"), 0},
	{"a fraction", 429, newHeader("Retry-After", "1.5"), 0},
	{"a sign", 429, newHeader("Retry-After", "+5"), 0},
	{"hexadecimal", 429, newHeader("Retry-After", "0x10"), 0},
	{"more digits than a number has", 429, newHeader("Retry-After", strings.Repeat("9", 30)), 0},
	{"the largest number", 429, newHeader("Retry-After", "9223372036854775807"), 0},
	{"empty", 429, newHeader("Retry-After", ""), 0},
	{"spaces", 429, newHeader("Retry-After", "  "), 0},
	{"garbage", 429, newHeader("Retry-After", "soon\x00"), 0},
	{"a megabyte", 429, newHeader("Retry-After", strings.Repeat("1", 1<<20)), 0},

	{"date by the server's clock", 503, newHeader("Retry-After", "Sat, 01 Jan 2000 00:01:30 GMT", "Date", date), 90 * time.Second},
	{"date by the local clock", 503, newHeader("Retry-After", "Sat, 01 Jan 2000 00:01:30 GMT"), 90 * time.Second},
	{"date by the local clock if Date is malformed", 503, newHeader("Retry-After", "Sat, 01 Jan 2000 00:01:30 GMT", "Date", "now"), 90 * time.Second},
	{"RFC 850", 503, newHeader("Retry-After", "Saturday, 01-Jan-00 00:01:30 GMT", "Date", date), 90 * time.Second},
	{"asctime", 503, newHeader("Retry-After", "Sat Jan  1 00:01:30 2000", "Date", date), 90 * time.Second},
	{"date in the past", 503, newHeader("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", "Date", date), 0},
	{"the year 9999", 503, newHeader("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", "Date", date), math.MaxInt64},
	{"the year 1", 503, newHeader("Retry-After", "Mon, 01 Jan 0001 00:00:00 GMT", "Date", date), 0},

	{"quota", 429, newHeader("RateLimit", `"default";r=0;t=30`), 30 * time.Second},
	{"the longest of those used up", 429, newHeader("RateLimit", `"burst";r=0;t=3, "day";r=0;t=600,"year";r=9;t=1000`), 10 * time.Minute},
	{"on two lines", 429, newHeader("RateLimit", `"burst";r=0;t=3`, "RateLimit", `"day";r=0;t=600`), 10 * time.Minute},
	{"Retry-After wins", 429, newHeader("RateLimit", `"default";r=0;t=30`, "Retry-After", "5"), 5 * time.Second},
	{"Retry-After that says nothing does not", 429, newHeader("RateLimit", `"default";r=0;t=30`, "Retry-After", "soon"), 30 * time.Second},
	{"other parameters", 429, newHeader("RateLimit", `"a\"b";pk=:Y2Rl:;r=0; t=30;x="y\\";z=1.5;n=-1;b;c=?1`), 30 * time.Second},
	{"a token", 429, newHeader("RateLimit", `default;r=0;t=30`), 30 * time.Second},
	{"quota left", 429, newHeader("RateLimit", `"default";r=1;t=30`), 0},
	{"no quota", 429, newHeader("RateLimit", `"default";t=30`), 0},
	{"no time", 429, newHeader("RateLimit", `"default";r=0`), 0},
	{"negative time", 429, newHeader("RateLimit", `"default";r=0;t=-30`), 0},
	{"a fraction of time", 429, newHeader("RateLimit", `"default";r=0;t=0.5`), 0},
	{"the longest time", 429, newHeader("RateLimit", `"default";r=0;t=999999999999999`), math.MaxInt64 / time.Second * time.Second},
	{"too many digits", 429, newHeader("RateLimit", `"default";r=0;t=9999999999999999`), 0},
	{"malformed anywhere", 429, newHeader("RateLimit", `"day";r=0;t=600, "burst`), 0},
	{"malformed on one line", 429, newHeader("RateLimit", `"day";r=0;t=600`, "RateLimit", `;`), 0},
	{"a comma too many", 429, newHeader("RateLimit", `"day";r=0;t=600,`), 0},
	{"no comma", 429, newHeader("RateLimit", `"day";r=0;t=600 "burst";r=0;t=3`), 0},
	{"no key", 429, newHeader("RateLimit", `"day";=0`), 0},
	{"no value", 429, newHeader("RateLimit", `"day";r=;t=3`), 0},
	{"what is no boolean", 429, newHeader("RateLimit", `"day";r=0;t=3;x=?2`), 0},
	{"two booleans", 429, newHeader("RateLimit", `"day";r=0;t=3;x=?10`), 0},
	{"more before the point than it may have", 429, newHeader("RateLimit", `"day";r=0;t=3;x=1234567890123.5`), 0},
	{"as much before the point as it may have", 429, newHeader("RateLimit", `"day";r=0;t=3;x=-123456789012.5`), 3 * time.Second},
	{"bytes without an end", 429, newHeader("RateLimit", `"day";r=0;t=3;x=:YQ`), 0},
	{"a decimal without decimals", 429, newHeader("RateLimit", `"day";r=0;t=3;x=1.`), 0},
	{"an escape of nothing", 429, newHeader("RateLimit", `"d\ay";r=0;t=3`), 0},
	{"not ASCII", 429, newHeader("RateLimit", `"täglich";r=0;t=3`), 0},
	{"a key in upper case", 429, newHeader("RateLimit", `"day";R=0;t=3`), 0},
	{"an older draft", 429, newHeader("RateLimit", "limit=10, remaining=0, reset=5"), 0},
	{"a megabyte", 429, newHeader("RateLimit", strings.Repeat(`"a";r=0;t=1,`, 1<<17)+`"b";r=0;t=5`), 0},

	{"older seconds", 429, newHeader("RateLimit-Reset", "12", "RateLimit-Remaining", "0"), 12 * time.Second},
	{"legacy seconds", 429, newHeader("X-RateLimit-Reset", "12"), 12 * time.Second},
	{"too early for a Unix time", 429, newHeader("X-RateLimit-Reset", "946684860", "Date", date), 946684860 * time.Second},
	{"legacy Unix time", 429, newHeader("X-RateLimit-Reset", "1700000060", "Date", "Tue, 14 Nov 2023 22:13:20 GMT"), time.Minute},
	{"legacy date", 429, newHeader("X-RateLimit-Reset", "Sat, 01 Jan 2000 00:01:30 GMT", "Date", date), 90 * time.Second},
	{"legacy with some left", 429, newHeader("X-RateLimit-Reset", "12", "X-RateLimit-Remaining", "3"), 0},
	{"legacy in thousandths", 429, newHeader("X-RateLimit-Reset", "1700000060000", "Date", date), math.MaxInt64},
}

func TestRetryAfterOfHeaders(t *testing.T) {
	for _, c := range retryAfterCases {
		synctest.Test(t, func(t *testing.T) { // the time is midnight of 1 January 2000
			require.Equal(t, c.want, retryAfter(&http.Response{StatusCode: c.status, Header: c.header}), c.name)
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7", `"a";r=0;t=3`, "1700000000", "Sat, 01 Jan 2000 00:00:00 GMT")
	f.Add("-1", `"a;b=:YQ==:;c=?1, d`, "x", "")
	f.Add("9223372036854775807", `*a;r=0;t=999999999999999`, "9223372036854775807", "Fri, 31 Dec 9999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, after, quota, reset, date string) {
		h := http.Header{"Retry-After": {after}, "Ratelimit": {quota}, "X-Ratelimit-Reset": {reset}, "Date": {date}}
		wait := retryAfter(&http.Response{StatusCode: http.StatusTooManyRequests, Header: h})
		require.GreaterOrEqual(t, wait, time.Duration(0))
	})
}
