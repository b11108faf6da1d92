package notify

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/alert"
)

// Bounds in characters. Slack asks for texts of up to 4,000 characters, and fields of up to 2,000,
// and cuts or refuses what is much longer.
const (
	slackLine   = 3000
	slackField  = 2000
	slackFields = 50
)

// slackMessage is of the older of Slack's two forms, which other chats take as well.
type slackMessage struct {
	Text        string            `json:"text"`
	Markup      bool              `json:"mrkdwn"` // false: asterisks and the like are text
	Parse       string            `json:"parse"`  // none: addresses are no links
	UnfurlLinks bool              `json:"unfurl_links"`
	UnfurlMedia bool              `json:"unfurl_media"`
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color    string      `json:"color"`
	Text     string      `json:"text"`
	MarkupIn []string    `json:"mrkdwn_in"` // empty: no part has markup
	Fields   []slackPair `json:"fields"`
	Time     int64       `json:"ts"`
}

type slackPair struct {
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
		Text:  slackText("["+strings.ToUpper(string(a.State))+"] "+a.Rule, slackLine),
		Parse: "none",
		Attachments: []slackAttachment{{
			Color: color, Text: slackText(a.Summary, slackLine), MarkupIn: []string{}, Fields: slackPairs(a), Time: at.Unix(),
		}},
	}
}

// slackPairs returns the labels but for the rule's name, and then the annotations but for the
// summary.
func slackPairs(a alert.Alert) []slackPair {
	pairs := []slackPair{}
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != "alertname" {
			pairs = append(pairs, slackPair{slackText(name, slackField), slackText(a.Labels[name], slackField), true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		if name != "summary" {
			pairs = append(pairs, slackPair{slackText(name, slackField), slackNote(a.Annotations[name]), false})
		}
	}
	if more := len(pairs) - slackFields + 1; more > 1 {
		pairs = append(pairs[:slackFields-1], slackPair{Title: "…", Value: fmt.Sprintf("and %d more", more), Short: true})
	}
	return pairs
}

// slackNote returns the value of an annotation. The author of the rule wrote it, and no stranger, so
// that an address is shown as a link.
func slackNote(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(text, "<>| ") || len(text) > slackField/2 {
		return slackText(text, slackField)
	}
	return "<" + strings.ReplaceAll(text, "&", "&amp;") + ">"
}

// slackMeaning escapes what Slack reads as control characters, and parts the beginning of an
// address, by a character that is not seen, so that no chat makes a link of it.
var slackMeaning = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "://", ":\u2060//")

// slackText returns a text that Slack shows as it is, cut to so many characters.
func slackText(s string, most int) string {
	escaped := slackMeaning.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(escaped) <= most {
		return escaped
	}
	runes := []rune(escaped[:min(len(escaped), most*utf8.UTFMax)])[:most-1]
	for i := len(runes) - 1; i >= max(len(runes)-4, 0); i-- {
		if runes[i] == '&' { // the end of its escape was cut
			runes = runes[:i]
			break
		}
		if runes[i] == ';' {
			break
		}
	}
	return string(runes) + "…"
}
