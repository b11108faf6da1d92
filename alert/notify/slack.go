package notify

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/alert"
)

// The maximum numbers of characters of a text, of characters of a field, and of fields. Slack asks
// for texts of up to 4,000 characters and fields of up to 2,000, and truncates or refuses longer
// ones.
const (
	maxSlackText   = 3000
	maxSlackField  = 2000
	maxSlackFields = 50
)

// slackMessage is a message with attachments. This is Slack's older form of messages, which other
// chat programs accept too.
type slackMessage struct {
	Text        string            `json:"text"`
	Markup      bool              `json:"mrkdwn"` // false: asterisks and underscores are shown
	Parse       string            `json:"parse"`  // none: addresses are not made links
	UnfurlLinks bool              `json:"unfurl_links"`
	UnfurlMedia bool              `json:"unfurl_media"`
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color    string       `json:"color"`
	Text     string       `json:"text"`
	MarkupIn []string     `json:"mrkdwn_in"` // empty: no part is markup
	Fields   []slackField `json:"fields"`
	Time     int64        `json:"ts"`
}

type slackField struct {
	Title string `json:"title"`
	Value string `json:"value"`
	Short bool   `json:"short"`
}

func newSlackMessage(a alert.Alert) slackMessage {
	color, at := "danger", a.StartsAt
	if a.State == alert.Resolved {
		color, at = "good", a.EndsAt
	}
	return slackMessage{
		Text:  slackText(title(a), maxSlackText),
		Parse: "none",
		Attachments: []slackAttachment{{
			Color: color, Text: slackText(a.Summary, maxSlackText), MarkupIn: []string{}, Fields: slackFields(a), Time: at.Unix(),
		}},
	}
}

// slackFields returns the labels except the rule's name, and the annotations except the summary.
func slackFields(a alert.Alert) []slackField {
	fields := []slackField{}
	labels, annotations := details(a)
	for _, d := range labels {
		fields = append(fields, slackField{slackText(d.name, maxSlackField), slackText(d.value, maxSlackField), true})
	}
	for _, d := range annotations {
		fields = append(fields, slackField{slackText(d.name, maxSlackField), slackAnnotation(d.value), false})
	}
	if more := len(fields) - maxSlackFields + 1; more > 1 {
		fields = append(fields[:maxSlackFields-1], slackField{Title: "…", Value: fmt.Sprintf("and %d more", more), Short: true})
	}
	return fields
}

// slackAnnotation returns the value of an annotation. An address is shown as a link.
func slackAnnotation(text string) string {
	if !isLink(text) || len(text) > maxSlackField/2 {
		return slackText(text, maxSlackField)
	}
	return "<" + strings.ReplaceAll(text, "&", "&amp;") + ">"
}

// slackEscapes escapes Slack's control characters and puts an invisible character into the
// beginning of an address, so that no chat makes it a link.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "://", ":\u2060//")

// slackText escapes a text that Slack shall show unchanged, in at most n characters.
func slackText(s string, n int) string {
	escaped := slackEscapes.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(escaped) <= n {
		return escaped
	}
	runes := []rune(escaped[:min(len(escaped), n*utf8.UTFMax)])[:n-1]
	for i := len(runes) - 1; i >= max(len(runes)-4, 0); i-- {
		if runes[i] == '&' { // an escape was cut in the middle
			runes = runes[:i]
			break
		}
		if runes[i] == ';' {
			break
		}
	}
	return string(runes) + "…"
}
