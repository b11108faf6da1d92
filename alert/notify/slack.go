package notify

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/alert"
)

// Slack posts each alert to a Slack channel, through an incoming webhook of its own
// URL: red when it fires, green when it has resolved. All methods are safe for
// concurrent use.
type Slack struct{ *sink }

// NewSlack returns a notifier for the incoming webhook at c.URL. It panics with the
// error of c.Validate if there is one.
func NewSlack(c Config) *Slack { return &Slack{sink: newSink(c, "slack", 4*time.Hour)} }

// Notify posts the alert once. Errors are of type *alert.DeliveryError, unless the
// context was cancelled.
func (s *Slack) Notify(ctx context.Context, a alert.Alert) error {
	return s.post(ctx, s.config.URL, newSlackMessage(a), nil)
}

type slackMessage struct {
	Text        string            `json:"text"`
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color  string       `json:"color"`
	Text   string       `json:"text"`
	Fields []slackField `json:"fields"`
	Time   int64        `json:"ts"`
}

type slackField struct {
	Title string `json:"title"`
	Value string `json:"value"`
	Short bool   `json:"short"`
}

func newSlackMessage(a alert.Alert) slackMessage {
	color, at := "danger", a.StartsAt
	if a.Resolved() {
		color, at = "good", a.EndsAt
	}
	details := slackAttachment{Color: color, Text: slackText(a.Summary), Time: at.Unix()}
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != alert.LabelName {
			details.Fields = append(details.Fields, slackField{name, slackText(a.Labels[name]), true})
		}
	}
	return slackMessage{
		Text:        slackText("[" + strings.ToUpper(a.Status()) + "] " + a.Rule),
		Attachments: []slackAttachment{details},
	}
}

// slackText escapes the three characters that Slack reads as markup.
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
