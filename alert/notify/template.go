package notify

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/weir-go/weir/alert"
)

// maxTemplateBody is the maximum number of bytes of a message made by a template.
const maxTemplateBody = 1 << 20

// NewTemplateWebhook returns a notifier that posts JSON made by a template, for receivers whose
// messages differ from Alertmanager's. body is a text/template over an [alert.Alert]:
//
//	{"message": "{{.Rule}}: {{printf "%.100s" .Summary}}", "alias": "{{.ID}}", "details": {{.Labels}}}
//
// The output of an action is escaped. Within a JSON text it becomes a part of the text. Elsewhere
// it becomes a JSON value: a map becomes an object, and a text gets its quotes. No value of an
// alert can therefore change the structure of the message. Times are printed in the form of RFC
// 3339. A label that does not exist is printed as the empty text.
//
// c.URL may have actions after its host. Their results are escaped for URLs. So a receiver may have
// one address for alerts that fire and another one for alerts that resolve:
//
//	https://api.example/v2/alerts{{if eq .State "resolved"}}/{{.ID}}/close{{end}}?identifierType=alias
//
// NewTemplateWebhook panics with the error of c.Validate if there is one. It also panics if a
// template is invalid, or if it does not make valid JSON or a valid URL from a firing and from a
// resolved test alert. A message that turns out invalid later, has more than 1 MB, or whose address
// has a value of "." or ".." as a part of its path, is dropped, and counted as dropped.
func NewTemplateWebhook(c Config, body string) alert.Notifier {
	w, err := newTemplateWebhook(c, body)
	if err != nil {
		panic(err)
	}
	return w
}

func newTemplateWebhook(c Config, body string) (*webhook, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	message, err := parseTemplate("body", body)
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	address, err := parseTemplate("URL", string(c.URL))
	if err != nil {
		return nil, errors.New("notify: URL (not shown) is an invalid template")
	}
	w := &webhook{
		endpoint: newEndpoint(c, "webhook", 4*time.Hour),
		message:  func(a alert.Alert) ([]byte, error) { return renderJSON(message, a) },
		address:  func(a alert.Alert) (string, error) { return renderURL(address, a) },
	}
	if err := w.tryTemplates(); err != nil {
		return nil, err
	}
	return w, nil
}

// tryTemplates renders a firing and a resolved alert.
func (w *webhook) tryTemplates() error {
	now := time.Now()
	a := alert.Alert{
		ID: "0123456789abcdef", Rule: "rule", Key: "key", Summary: "summary", State: alert.Firing, Value: 0.5, Calls: 2, Bad: 1,
		Labels:      map[string]string{"alertname": "rule", "key": "key", "severity": "page", "instance": "instance"},
		Annotations: map[string]string{"runbook": "https://runbook.example"}, ActiveAt: now, StartsAt: now,
	}
	for _, a.State = range []alert.State{alert.Firing, alert.Resolved} {
		if _, err := w.message(a); err != nil {
			return fmt.Errorf("notify: the template fails for a test alert: %w", errors.Unwrap(err))
		}
		if _, err := w.address(a); err != nil {
			return errors.New("notify: URL (not shown) is a template that fails for a test alert")
		}
		a.EndsAt = now
	}
	return nil
}

// escaper is the name of the function that escapes the output of every action of a template.
const escaper = "_escape"

// parseTemplate parses a template whose actions call the escaper on what they print.
func parseTemplate(name, text string) (*template.Template, error) {
	placeholder := template.FuncMap{escaper: func(any) string { return "" }}
	t, err := template.New(name).Option("missingkey=zero").Funcs(placeholder).Parse(text)
	if err != nil {
		return nil, err
	}
	for _, defined := range t.Templates() {
		if defined.Tree != nil {
			escapeActions(defined.Root)
		}
	}
	return t, nil
}

// escapeActions appends a call of the escaper to each action below n that prints something.
func escapeActions(n *parse.ListNode) {
	if n == nil {
		return
	}
	for _, node := range n.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			if len(node.Pipe.Decl) == 0 {
				call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: node.Pos, Args: []parse.Node{parse.NewIdentifier(escaper).SetPos(node.Pos)}}
				node.Pipe.Cmds = append(node.Pipe.Cmds, call)
			}
		case *parse.IfNode:
			escapeActions(node.List)
			escapeActions(node.ElseList)
		case *parse.RangeNode:
			escapeActions(node.List)
			escapeActions(node.ElseList)
		case *parse.WithNode:
			escapeActions(node.List)
			escapeActions(node.ElseList)
		}
	}
}

// renderJSON executes a template and returns its output, which is JSON.
func renderJSON(t *template.Template, a alert.Alert) ([]byte, error) {
	w := &jsonWriter{}
	if err := render(t, w, w.escape, a); err != nil {
		return nil, err
	}
	if !json.Valid(w.written) {
		return nil, &alert.DeliveryError{Permanent: true, Err: errors.New("the message is not valid JSON")}
	}
	return w.written, nil
}

// renderURL executes a template and returns its output, which is a URL.
func renderURL(t *template.Template, a alert.Alert) (string, error) {
	var w strings.Builder
	if err := render(t, &w, escapeURL, a); err != nil {
		return "", err
	}
	if err := (Config{URL: Secret(w.String())}).Validate(); err != nil {
		return "", &alert.DeliveryError{Permanent: true, Err: err}
	}
	if u, err := url.Parse(w.String()); err != nil || hasDotSegment(u.EscapedPath()) {
		return "", &alert.DeliveryError{Permanent: true, Err: errors.New("a value is . or .. in the path of the URL, which would be another address")}
	}
	return w.String(), nil
}

// hasDotSegment reports whether a path has a segment that refers to another path. It cannot be
// escaped: servers and proxies also resolve %2E%2E.
func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// render executes a copy of a template with its own escaper.
func render(t *template.Template, w interface{ Write([]byte) (int, error) }, escape func(any) (string, error), a alert.Alert) error {
	own, err := t.Clone()
	if err == nil {
		err = own.Funcs(template.FuncMap{escaper: escape}).Execute(w, a)
	}
	if err != nil {
		return &alert.DeliveryError{Permanent: true, Err: fmt.Errorf("the message cannot be made: %w", err)}
	}
	return nil
}

// jsonWriter collects the output of a template. It scans the output, so that it knows at each
// action whether the result of the action will stand within a JSON text.
type jsonWriter struct {
	written           []byte
	inText, afterBack bool // within a text, and after a backslash in it
}

func (w *jsonWriter) Write(p []byte) (int, error) {
	if len(w.written)+len(p) > maxTemplateBody {
		return 0, fmt.Errorf("it has more than %d bytes", maxTemplateBody)
	}
	for _, b := range p {
		switch {
		case w.afterBack:
			w.afterBack = false
		case w.inText && b == '\\':
			w.afterBack = true
		case b == '"':
			w.inText = !w.inText
		}
	}
	w.written = append(w.written, p...)
	return len(p), nil
}

// escape returns a value as the next part of the output.
func (w *jsonWriter) escape(value any) (string, error) {
	if w.inText {
		value = plainText(value)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", errors.New("a value cannot be encoded as JSON")
	}
	if w.inText {
		encoded = encoded[1 : len(encoded)-1]
	}
	return string(encoded), nil
}

// escapeURL returns a value as a part of a path or a query.
func escapeURL(value any) (string, error) {
	return strings.ReplaceAll(url.QueryEscape(plainText(value)), "+", "%20"), nil
}

func plainText(value any) string {
	if m, ok := value.(encoding.TextMarshaler); ok { // such as a time
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(value)
}
