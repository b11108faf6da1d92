package weirhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Refusal is a request that a server refused to serve.
type Refusal struct {
	// Status is the status of the response: 429 if a policy refused the request, and 503 if a Shed
	// or a Guard did or a Remote came to no decision.
	Status int
	// Policies has the names of the policies that refused the request, or the name of the Shed's
	// limiter.
	Policies []string
	// Err is the error of the gate of a Guard, of the limiter of a Shed, or of a Remote that came
	// to no decision. If a policy refused the request, Err is nil, or says that MaxKeys keys of the
	// policy are in use and the request has another key.
	Err error
	// RetryAfter is how long the client should wait, or limiter.Never if the request can never
	// succeed.
	RetryAfter time.Duration
}

// problem is a body of type application/problem+json (RFC 9457). Its types are those of
// draft-ietf-httpapi-ratelimit-headers-10.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// WriteProblem writes a response with the refusal's status and a body of type
// application/problem+json. The problem's type is quota-exceeded for 429 and
// temporary-reduced-capacity for 503, and its violated-policies are Policies.
func (f Refusal) WriteProblem(w http.ResponseWriter, _ *http.Request) {
	p := problem{
		Type: problemTypes + "quota-exceeded", Title: "Request cannot be satisfied as assigned quota has been exceeded",
		Status: f.Status, Violated: f.Policies, Detail: f.detail(),
	}
	if f.Status == http.StatusServiceUnavailable {
		p.Type, p.Title = problemTypes+"temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"
	}
	body, _ := json.Marshal(p) // cannot fail
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	w.Write(body)
}

func (f Refusal) detail() string {
	if f.RetryAfter == limiter.Never {
		return "This request asks for more than the quota allows at once."
	}
	return "Try again in " + strconv.FormatInt(wholeSeconds(f.RetryAfter), 10) + " s."
}

// answer calls onRefusal unless the client has left, sets Retry-After unless the request can never
// succeed, and writes the response.
func (f Refusal) answer(w http.ResponseWriter, r *http.Request, onRefusal func(*http.Request, Refusal), write func(http.ResponseWriter, *http.Request, Refusal)) {
	gone := r.Context().Err()
	left := gone != nil && errors.Is(f.Err, gone) && !errors.Is(f.Err, weir.ErrRefused)
	if onRefusal != nil && !left {
		onRefusal(r, f)
	}
	if f.RetryAfter != limiter.Never {
		w.Header().Set("Retry-After", strconv.FormatInt(wholeSeconds(f.RetryAfter), 10))
	}
	if write == nil {
		f.WriteProblem(w, r)
		return
	}
	write(w, r, f)
}

// RefusedError is the error of a request that was not sent. It matches what Err matches:
// weir.ErrRefused, and breaker.ErrOpen, limiter.ErrLimited or inflight.ErrFull. [weir.RetryAfter]
// returns its wait, also for the [*net/url.Error] that an http.Client returns.
type RefusedError struct {
	// Host is the host of the request as ByHost returns it.
	Host string
	// Err is the error of the gate, such as a *breaker.OpenError or a *limiter.LimitedError.
	Err error
}

func (e *RefusedError) Error() string {
	wait := knownWait(e.Err, weir.RetryAfter(e.Err))
	open, ok := errors.AsType[*breaker.OpenError](e.Err)
	if forced := ok && open.State == breaker.ForcedOpen; forced || wait <= 0 || wait == limiter.Never {
		return fmt.Sprintf("weirhttp: %s is not called: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("weirhttp: %s is not called for %v: %v", e.Host, wait.Round(time.Millisecond), e.Err)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// statusError is the error that a breaker records for a response that counts as a failure.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e)))
}
