package weirhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-go/weir/limiter"
)

// LimitByConfig says how [LimitBy] answers.
type LimitByConfig struct {
	Name string // of the limit, in headers and problems, as Policy.Name. Must be given.

	// OnRefusal is told of each refusal, in the goroutine of the request: see LogRefusedRequests. Default: none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a refused request; Retry-After is set. Default: Refusal.WriteProblem.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns nil for a configuration that makes sense, and otherwise an error.
func (c LimitByConfig) Validate() error {
	if c.Name == "" || len(c.Name) > maxName || strings.ContainsFunc(c.Name, unquotable) {
		return fmt.Errorf("weirhttp: Name has %d bytes, must be 1 to %d printable ASCII characters without \" and \\", len(c.Name), maxName)
	}
	return nil
}

// LimitBy returns middleware that lets a limiter of yours decide, of whatever kind it is, on one machine or many:
//
//	key := weirhttp.FromHeader("X-Api-Key")
//	limit := weirhttp.LimitBy(func(r *http.Request) (limiter.Result, error) {
//		res, err := users.Take(r.Context(), key(r), 1) // a fleet.Limiter
//		return res.Result, err
//	}, weirhttp.LimitByConfig{Name: "users"})
//
// Limiters keep keys in memory, so bound the length of a key that a client chooses, as [FromHeader] does.
//
// What is refused is answered as a [Limit] does; RateLimit tells what is left, and when to come back where nothing is.
// An error means that there is no decision, and is answered with status 503. LimitBy panics with the error of c.Validate where
// there is one, and where take is nil.
func LimitBy(take func(*http.Request) (limiter.Result, error), c LimitByConfig) func(http.Handler) http.Handler {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if take == nil {
		panic(errors.New("weirhttp: LimitBy needs a function"))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			result, err := take(r)
			if err == nil {
				c.tell(w.Header(), result)
			}
			if err == nil && result.OK {
				next.ServeHTTP(w, r)
				return
			}
			c.refusal(r, result, err).answer(w, r, c.OnRefusal, c.Answer)
		})
	}
}

func (c LimitByConfig) refusal(r *http.Request, result limiter.Result, err error) Refusal {
	f := Refusal{
		Status: http.StatusTooManyRequests, Policies: []string{c.Name}, RetryAfter: result.RetryAfter,
		Err: err, IP: Proxies{}.ClientIP(r), Route: r.Pattern,
	}
	if err != nil {
		f.Status, f.RetryAfter = http.StatusServiceUnavailable, 0
	}
	return f
}

// tell writes into the headers how things stand. How fast permits come is not known, so no time is told for those that
// are left.
func (c LimitByConfig) tell(h http.Header, r limiter.Result) {
	item := `"` + c.Name + `"`
	h.Add(headerPolicy, item+";q="+strconv.Itoa(r.Limit))
	left := item + ";r=" + strconv.Itoa(r.Remaining)
	if !r.OK && r.RetryAfter != limiter.Never {
		left += ";t=" + strconv.FormatInt(wholeSeconds(r.RetryAfter), 10)
	}
	h.Add(headerLimit, left)
}
