package notify

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/limiter"
)

// webhook posts alerts to a URL, one per request. The kinds of webhooks differ in the message.
type webhook struct {
	*endpoint
	// The functions are closures, whose contents fmt cannot print, because they may hold keys.
	message func(alert.Alert) (body []byte, err error)
	address func(alert.Alert) (url string, err error)              // nil: the URL of the endpoint
	sign    func(id string, at time.Time, body []byte) http.Header // nil: unsigned
}

// NewWebhook returns a notifier that posts messages of Alertmanager's webhook format, version 4, so
// that every receiver of Alertmanager's webhooks can be used. Each message holds one alert. Its
// annotations are those of the rule, "summary" and "value". NewWebhook panics with the error of
// c.Validate if there is one.
func NewWebhook(c Config) alert.Notifier { return newWebhook(c) }

func newWebhook(c Config) *webhook {
	e := newEndpoint(c, "webhook", 4*time.Hour)
	return &webhook{endpoint: e, message: func(a alert.Alert) ([]byte, error) { return encode(newMessage(e.name, a)) }}
}

// NewSignedWebhook is NewWebhook with messages that are signed according to the Standard Webhooks
// specification, version 1.0.0. The key is "whsec_" followed by 24 to 64 bytes in base64. The
// header webhook-id is the same whenever the same state of an alert is sent, so that a receiver can
// recognize repetitions. NewSignedWebhook also panics if the key has a different form.
func NewSignedWebhook(c Config, key Secret) alert.Notifier {
	w := newWebhook(c)
	parsed, err := parseKey(string(key))
	if err != nil {
		panic(err)
	}
	w.sign = parsed.sign
	return w
}

// NewSlack returns a notifier that posts each alert to a Slack channel: red when it fires, green
// when it resolves. c.URL is the address of a Slack incoming webhook. Names, labels and summaries
// are shown as plain text: markup, mentions and links in them have no effect. An annotation that is
// an http or https address is shown as a link. All texts are cut to the lengths that Slack accepts.
// Slack documents a limit of one message per second, and permits short bursts. So Notify sends up
// to ten messages at once, and then waits up to a second per message. NewSlack panics with the
// error of c.Validate if there is one.
func NewSlack(c Config) alert.Notifier {
	e := newEndpoint(c, "slack", 4*time.Hour)
	e.pace = newRateLimiter(limiter.PerSecond(1), 10)
	return &webhook{endpoint: e, message: func(a alert.Alert) ([]byte, error) { return encode(newSlackMessage(a)) }}
}

// Notify posts the alert once. Its error is an *alert.DeliveryError, unless ctx was canceled.
func (w *webhook) Notify(ctx context.Context, a alert.Alert) error {
	body, err := w.message(a)
	if err != nil {
		return err
	}
	address := w.url()
	if w.address != nil {
		if address, err = w.address(a); err != nil {
			return err
		}
	}
	var signature http.Header
	if w.sign != nil {
		signature = w.sign(messageID(a), time.Now(), body)
	}
	return w.post(ctx, address, body, signature)
}

// messageID returns an ID that is unique to one state of one firing of an alert.
func messageID(a alert.Alert) string {
	return "msg_" + a.ID + "_" + strconv.FormatInt(a.StartsAt.UnixMilli(), 36) + "_" + string(a.State)
}

// message is a message of Alertmanager's webhooks: its template.Data, a version and a group key.
type message struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Receiver          string            `json:"receiver"`
	Status            string            `json:"status"`
	Alerts            []messageAlert    `json:"alerts"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
}

type messageAlert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // the zero time while firing, as in Alertmanager
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

func newMessage(receiver string, a alert.Alert) message {
	annotations := annotationsOf(a)
	return message{
		Version: "4", GroupKey: groupKey(a.Labels), Receiver: receiver, Status: string(a.State),
		GroupLabels: a.Labels, CommonLabels: a.Labels, CommonAnnotations: annotations,
		Alerts: []messageAlert{{
			Status: string(a.State), Labels: a.Labels, Annotations: annotations,
			StartsAt: a.StartsAt, EndsAt: a.EndsAt, Fingerprint: a.ID,
		}},
	}
}

// annotationsOf returns the annotations of the rule, "summary" and "value".
func annotationsOf(a alert.Alert) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, a.Annotations)
	annotations["summary"], annotations["value"] = a.Summary, valueText(a)
	return annotations
}

// groupKey returns the group key of an Alertmanager that groups by every label.
func groupKey(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return "{}:{" + strings.Join(pairs, ", ") + "}"
}
