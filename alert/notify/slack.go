package notify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/alert"
)

// Slack posts each alert to a Slack channel, through an incoming webhook of its own
// URL: red when it fires, green when it has resolved. Names, labels and summaries are
// shown as they are, without markup, mentions and links, and are cut to the lengths that
// Slack takes. All methods are safe for concurrent use.
type Slack struct{ *sink }

// NewSlack returns a notifier for the incoming webhook at c.URL. It panics with the
// error of c.Validate if there is one.
func NewSlack(c Config) *Slack { return &Slack{sink: newSink(c, "slack", 4*time.Hour)} }

// Notify posts the alert once. Errors are of type *alert.DeliveryError, unless the
// context was cancelled.
func (s *Slack) Notify(ctx context.Context, a alert.Alert) error {
	return s.post(ctx, newSlackMessage(a), nil)
}

// Slack's limits, in characters. Source: the references of chat.postMessage, and of the
// blocks and composition objects of Block Kit.
const (
	slackLine   = 3000 // of the text of a section
	slackField  = 2000 // of a field
	slackFields = 10   // of a section
	slackLabels = 100  // ours: 10 of the 50 blocks that a message may have
)

type slackMessage struct {
	Text        string            `json:"text"` // of the notification; the blocks are what is shown
	Parse       string            `json:"parse"`
	Blocks      []slackBlock      `json:"blocks"`
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color  string       `json:"color"`
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Fields   []slackText `json:"fields,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

type slackText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji,omitempty"`
}

func newSlackMessage(a alert.Alert) slackMessage {
	color, at := "#a30200", a.StartsAt
	if a.Resolved() {
		color, at = "#2eb886", a.EndsAt
	}
	title := plainText("["+strings.ToUpper(a.Status())+"] "+a.Rule, slackLine)
	var details []slackBlock
	if a.Summary != "" {
		summary := plainText(a.Summary, slackLine)
		details = append(details, slackBlock{Type: "section", Text: &summary})
	}
	for fields := range slices.Chunk(slackLabelsOf(a), slackFields) {
		details = append(details, slackBlock{Type: "section", Fields: fields})
	}
	details = append(details, slackBlock{Type: "context", Elements: []slackText{slackDate(at)}})
	return slackMessage{
		Text: title.Text, Parse: "none",
		Blocks:      []slackBlock{{Type: "section", Text: &title}},
		Attachments: []slackAttachment{{Color: color, Blocks: details}},
	}
}

// slackLabelsOf returns the labels but for the rule's name, one a field.
func slackLabelsOf(a alert.Alert) (fields []slackText) {
	names := slices.Sorted(maps.Keys(a.Labels))
	names = slices.DeleteFunc(names, func(name string) bool { return name == alert.LabelName })
	for i, name := range names {
		if i == slackLabels-1 && len(names) > slackLabels {
			return append(fields, plainText(fmt.Sprintf("… and %d more", len(names)-i), slackField))
		}
		fields = append(fields, plainText(name+": "+a.Labels[name], slackField))
	}
	return fields
}

// plainText is a text that Slack shows as it is. The three characters that it reads as
// control characters are escaped all the same.
func plainText(s string, most int) slackText {
	return slackText{Type: "plain_text", Text: slackEscape(s, most), Emoji: new(bool)}
}

// slackDate is a time in the zone of whoever reads it.
func slackDate(at time.Time) slackText {
	return slackText{Type: "mrkdwn", Text: fmt.Sprintf("<!date^%d^{date_num} {time_secs}|%s>", at.Unix(), at.UTC().Format(time.RFC3339))}
}

// slackEscape escapes a text and cuts it to so many characters.
func slackEscape(s string, most int) string {
	var b strings.Builder
	left, s := most, strings.ToValidUTF8(s, "\uFFFD")
	for i, r := range s {
		text := slackRune(r)
		n := utf8.RuneCountInString(text)
		if n >= left && i+utf8.RuneLen(r) < len(s) || n > left {
			return b.String() + "…"
		}
		b.WriteString(text)
		left -= n
	}
	return b.String()
}

func slackRune(r rune) string {
	switch r {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	}
	return string(r)
}
