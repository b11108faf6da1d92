package admin

import (
	"net/http"
	"strings"
)

// The verbs of actions. verbEnd is only in histories.
const (
	verbRead      = "read"
	verbForce     = "force"
	verbRelease   = "release"
	verbReset     = "reset"
	verbHold      = "hold"
	verbDrain     = "drain"
	verbLimits    = "limits"
	verbSilence   = "silence"
	verbUnsilence = "unsilence"
	verbTest      = "test"
	verbEnd       = "end"
)

// route is one path of the handler. The OpenAPI description is made of the table of routes too.
type route struct {
	method, path, help string
	query              []field
	body               []field
	answer             string // the schema of the answer
	serve              func(h *Handler, r *request) (any, error)
}

// field is a parameter of a query or a member of a body.
type field struct {
	name, kind, help string
	required         bool
	enum             []string
}

// verb returns Action.Verb of the requests.
func (r *route) verb() string {
	if r.method == http.MethodGet {
		return verbRead
	}
	return strings.TrimPrefix(r.path, "/")
}

var (
	nameField = field{name: "name", kind: "string", required: true, help: "the name of the object"}
	kindField = field{name: "kind", kind: "string", help: "the kind of the object, if several have the name: gate, gate_group, " +
		"breaker, breaker_group, limiter, limiter_group, inflight, throttle, policy, monitor, link, other, or that of a guard of your own"}
	keyField   = field{name: "key", kind: "string", help: "the key of a member of a group, or of an object with keys"}
	allField   = field{name: "all", kind: "string", help: "true for an action on all keys of an object with keys, which needs either key or all", enum: []string{"true"}}
	stateField = field{name: "state", kind: "string", help: "only members in this state", enum: []string{
		"closed", "open", "half_open", "recovering", "forced_open", "forced_closed", "disabled", "shadow",
	}}

	overrideField = field{
		name: "state", kind: "string", required: true, enum: []string{"open", "closed", "disabled", "shadow"},
		help: "one of open, closed, disabled, shadow",
	}
	durationField      = field{name: "for", kind: "string", help: "a duration above 0 and of at most 720h, such as 10m, after which the action ends automatically"}
	waitField          = field{name: "for", kind: "string", required: true, help: "a duration above 0 and of at most 720h, such as 30s"}
	reasonField        = field{name: "reason", kind: "string", help: "a text of at most 500 bytes for the log and the history"}
	rateField          = field{name: "rate", kind: "string", help: "a rate such as 100/s, or unlimited"}
	burstField         = field{name: "burst", kind: "integer", help: "the most tokens"}
	maxConcurrentField = field{name: "max_concurrent", kind: "integer", help: "the highest number of calls in flight, of an adaptive bound the highest limit"}
	quotaField         = field{name: "limit", kind: "integer", help: "the most requests per window of a policy"}
	ratioField         = field{name: "k", kind: "number", help: "the K of a throttle, at least 1"}
	maxRefusalField    = field{name: "max_refusal", kind: "number", help: "the highest probability of a refusal by a throttle, at most 1"}
	matchField         = field{
		name: "match", kind: "array", required: true,
		help: "1 to 32 conditions on labels that must all hold, such as alertname=\"payments fail\" or severity!=page",
	}
	silenceField      = field{name: "silence", kind: "string", help: "the name of the silence, which replaces one with the same name; default the conditions"}
	endedSilenceField = field{name: "silence", kind: "string", required: true, help: "the name of the silence"}
	notifierField     = field{name: "notifier", kind: "string", required: true, help: "the name of the notifier"}
)

// routes returns the table. It is a function, because the route of the OpenAPI description reads
// the table: a variable would depend on itself.
func routes() []route {
	one := []field{nameField, kindField, keyField}
	action := func(path, help string, body ...field) route {
		return route{http.MethodPost, path, help, append(one[:3:3], allField), body, "Object", (*Handler).act}
	}
	return []route{
		{http.MethodGet, "/objects", "List all objects.", nil, nil, "Objects", (*Handler).list},
		{http.MethodGet, "/object", "Show an object and its history.", one, nil, "Details", (*Handler).details},
		{
			http.MethodGet, "/members", "List up to 1,000 members of a group.",
			[]field{nameField, kindField, stateField},
			nil, "Members", (*Handler).members,
		},
		{http.MethodGet, "/openapi.json", "Describe this API.", nil, nil, "", func(*Handler, *request) (any, error) { return describe(), nil }},
		action("/force", "Override the state of a breaker or gate, or of all members of a group.", overrideField, durationField, reasonField),
		action("/release", "Lift the override.", durationField, reasonField),
		action("/drain", "Refuse new calls as force with the state open. Calls in flight end as usual.", durationField, reasonField),
		action("/reset", "Close a breaker and clear its window, fill the bucket of a key, or clear the window of a throttle.", reasonField),
		action("/hold", "Refuse all calls for a time, which a shorter hold does not shorten.", waitField, reasonField),
		action(
			"/limits", "Change limits. An object has some of them.",
			rateField, burstField, maxConcurrentField, quotaField, ratioField, maxRefusalField, durationField, reasonField,
		),
		action("/silence", "Hold back the notifications of some alerts of a monitor.", matchField, waitField, silenceField, reasonField),
		action("/unsilence", "Remove a silence.", endedSilenceField, reasonField),
		action("/test", "Send a test message to a notifier of a monitor, and wait for its answer.", notifierField, reasonField),
	}
}

// findRoute returns the route of a request.
func findRoute(r *http.Request) (*route, error) {
	var allowed []string
	for _, route := range routes() {
		if route.path != path(r) {
			continue
		}
		if route.method == r.Method || route.method == http.MethodGet && r.Method == http.MethodHead {
			return &route, nil
		}
		allowed = append(allowed, route.method)
	}
	if len(allowed) > 0 {
		return nil, &replyError{
			http.StatusMethodNotAllowed, truncateText(r.Method, 16) + " is not allowed, must be " + strings.Join(allowed, " or "),
			"Allow", strings.Join(allowed, ", "),
		}
	}
	return nil, replyErrorf(http.StatusNotFound, "there is no path %.64q", path(r))
}
