package weirhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Refusal is a request that a server did not serve, and why.
type Refusal struct {
	Status     int           // 429 if the client asked for too much; 503 if the server is busy, its handler fails, or there was no decision
	Policies   []string      // the policies that refused it, or the name of the Shed; none if a Guard refused or there was no decision
	Err        error         // of the gate if a Guard refused, of the Remote if there was no decision; otherwise nil
	RetryAfter time.Duration // how long the client should wait; limiter.Never if the request can never succeed
}

// problem is the body of a refusal: RFC 9457, with the types of draft-ietf-httpapi-ratelimit-headers-10.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// WriteProblem answers with the status of the refusal and a body of application/problem+json: of type quota-exceeded
// for 429 and temporary-reduced-capacity for 503, with violated-policies.
func (f Refusal) WriteProblem(w http.ResponseWriter, _ *http.Request) {
	p := problem{
		Type: problemTypes + "quota-exceeded", Title: "Request cannot be satisfied as assigned quota has been exceeded",
		Status: f.Status, Violated: f.Policies, Detail: f.detail(),
	}
	if f.Status == http.StatusServiceUnavailable {
		p.Type, p.Title = problemTypes+"temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"
	}
	writeProblem(w, p)
}

func (f Refusal) detail() string {
	if f.RetryAfter == limiter.Never {
		return "This request asks for more than can be had at once."
	}
	return "Try again in " + strconv.FormatInt(wholeSeconds(f.RetryAfter), 10) + " s."
}

func writeProblem(w http.ResponseWriter, p problem) {
	body, _ := json.Marshal(p) // strings and a number always can be written
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	w.Write(body)
}

// setRetryAfter tells how long to wait: not at all, where waiting is of no use.
func setRetryAfter(h http.Header, wait time.Duration) {
	if wait != limiter.Never {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(wait), 10))
	}
}

// answer tells the hook of the refusal, and then the client.
func (f Refusal) answer(w http.ResponseWriter, r *http.Request, hook func(*http.Request, Refusal), with func(http.ResponseWriter, *http.Request, Refusal)) {
	if hook != nil {
		hook(r, f)
	}
	setRetryAfter(w.Header(), f.RetryAfter)
	if with == nil {
		with = func(w http.ResponseWriter, r *http.Request, f Refusal) { f.WriteProblem(w, r) }
	}
	with(w, r, f)
}
