package admin

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// request is an authorized request.
type request struct {
	route  *route
	query  url.Values
	user   string
	action Action
	body   values
	*http.Request
}

// serve returns the answer to a request.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	route, err := findRoute(r)
	if err != nil {
		return nil, err
	}
	if err := h.origin.Check(r); err != nil {
		return nil, replyErrorf(http.StatusForbidden, "%v", err)
	}
	query, err := parseQuery(r, route.query)
	if err != nil {
		return nil, err
	}
	if route.method == http.MethodPost {
		if err := checkType(r); err != nil {
			return nil, err
		}
	}
	req := &request{route: route, query: query, Request: r}
	req.action = Action{Verb: route.verb(), Kind: query.Get("kind"), Name: query.Get("name"), Key: query.Get("key")}
	if req.user, err = h.authorize(r, req.action); err != nil {
		return nil, err
	}
	if err := h.checkRate(req.user); err != nil {
		return nil, err
	}
	if route.method == http.MethodPost {
		members, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		if req.body, err = parse(members, route.body); err != nil {
			return nil, err
		}
	}
	return route.serve(h, req)
}

// authorize returns the user of the request.
func (h *Handler) authorize(r *http.Request, a Action) (user string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			h.config.Logger.LogAttrs(r.Context(), slog.LevelError, "admin: Authorize panicked",
				slog.String("event.name", eventRefused), slog.String("panic", truncateText(fmt.Sprint(cause), maxReason)))
			user, err = "", replyErrorf(http.StatusInternalServerError, "the request could not be authorized")
		}
	}()
	user, err = h.config.Authorize(r, a)
	user = truncateText(user, maxUserBytes)
	switch {
	case user == "":
		return "", replyErrorf(http.StatusUnauthorized, "the request has no valid credentials")
	case err != nil:
		return "", replyErrorf(http.StatusForbidden, "%.200q may not %s: %.300v", user, a.Verb, err)
	}
	return user, nil
}

// checkRate refuses a user who sends too many requests.
func (h *Handler) checkRate(user string) error {
	r := h.rates.Get(user).Take(1)
	if r.OK {
		return nil
	}
	text := fmt.Sprintf("%q sends more than %d requests per second", user, maxRate)
	if h.rates.Len() >= maxUsers {
		text = fmt.Sprintf("%q, or all users beyond %d together, send more than %d requests per second", user, maxUsers, maxRate)
	}
	return &replyError{
		http.StatusTooManyRequests, text,
		"Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))),
	}
}

// act serves an action.
func (h *Handler) act(r *request) (any, error) {
	o, err := h.findTarget(r)
	if err != nil {
		return nil, err
	}
	r.action.Kind = o.Kind
	t, err := h.claim(idOf(o, r.action.Key))
	if err != nil {
		return nil, err
	}
	defer h.unclaim(t)
	lock := &t.busy
	if r.action.Verb == verbTest {
		lock = &t.testing // alerts can be silenced while a receiver hangs
	}
	if !lock.TryLock() {
		return nil, &replyError{http.StatusConflict, "another action on this object is in progress", "Retry-After", "1"}
	}
	defer lock.Unlock()
	e, err := t.apply(h, &o, r)
	if err != nil {
		return nil, err
	}
	h.record(t, e)
	return h.view(&o, r.action.Key), nil
}

// findTarget returns the object of an action. For an object with keys, the request has to say
// whether one key is meant or all of them.
func (h *Handler) findTarget(r *request) (o object, err error) {
	all := r.query.Has("all")
	if all && r.action.Key != "" {
		return o, replyErrorf(http.StatusBadRequest, "the query has both key and all")
	}
	if o, err = h.findMember(r.action); err != nil || r.action.Key != "" {
		return o, err
	}
	switch keyed := hasKeys(&o); {
	case keyed && !all:
		return o, replyErrorf(http.StatusBadRequest, "the %s %.64q has keys: add key=… for one of them, or all=true for all of them", o.Kind, o.Name)
	case all && !keyed:
		return o, replyErrorf(http.StatusBadRequest, "all is set, but the %s %.64q is not a group and has no keys", o.Kind, o.Name)
	}
	return o, nil
}

// record logs what was done and keeps it in the history of the object.
func (h *Handler) record(t *target, e entry) {
	e.At = time.Now()
	h.mu.Lock()
	t.acts = append(t.acts, e)
	if n := len(t.acts) - maxActs; n > 0 {
		t.acts = append(t.acts[:0:0], t.acts[n:]...)
	}
	h.mu.Unlock()
	h.logEntry(t, e)
}
