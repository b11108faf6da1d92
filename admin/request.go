package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// bodyTimeout is how long the body of a request may take.
const bodyTimeout = 10 * time.Second

// readBody reads the members of the request's JSON object. An empty body is an empty object.
func readBody(w http.ResponseWriter, r *http.Request) (map[string]json.RawMessage, error) {
	// Some writers have no deadlines. For these, the timeouts of the server apply.
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, replyErrorf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBody)
	case err != nil:
		return nil, replyErrorf(http.StatusRequestTimeout, "the body did not arrive within %v", bodyTimeout)
	}
	return decode(content)
}

// decode reads a JSON object whose names are all different.
func decode(content []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(content)) == 0 {
		return members, nil
	}
	if !json.Valid(content) {
		return nil, replyErrorf(http.StatusBadRequest, "the body is not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader(content))
	if first, _ := d.Token(); first != json.Delim('{') {
		return nil, replyErrorf(http.StatusBadRequest, "the body must be a JSON object")
	}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, replyErrorf(http.StatusBadRequest, "the body is not valid JSON")
		}
		if _, twice := members[name]; twice {
			return nil, replyErrorf(http.StatusBadRequest, "the body has %.64q twice", name)
		}
		members[name] = value
	}
	return members, nil
}

// checkType refuses bodies that are not JSON. HTML forms cannot send this Content-Type. So this
// also refuses forms of other websites, as the check of the origin does.
func checkType(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return replyErrorf(http.StatusUnsupportedMediaType, "Content-Type is %.64q, must be application/json", r.Header.Get("Content-Type"))
	}
	return nil
}

// parseQuery returns the query of the request. It refuses a query of which net/url would drop a
// part, and parameters that are empty, that are given twice, or that the route does not have. An
// action without one of its parameters could do more than was meant.
func parseQuery(r *http.Request, allowed []field) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, replyErrorf(http.StatusBadRequest, "the query is not valid: %.100v: write %%25 for %%, %%26 for & and %%3B for ;", err)
	}
	for name, values := range query {
		at := slices.IndexFunc(allowed, func(f field) bool { return f.name == name })
		switch {
		case at < 0:
			return nil, replyErrorf(http.StatusBadRequest, "the query has no parameter %.64q", name)
		case len(values) > 1:
			return nil, replyErrorf(http.StatusBadRequest, "the query has %q twice", name)
		case values[0] == "":
			return nil, replyErrorf(http.StatusBadRequest, "%s is empty in the query", name)
		case allowed[at].enum != nil && !slices.Contains(allowed[at].enum, values[0]):
			return nil, replyErrorf(http.StatusBadRequest, "%s is %.64q in the query, must be %s", name, values[0], strings.Join(allowed[at].enum, ", "))
		}
	}
	return query, nil
}
