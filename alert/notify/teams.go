package notify

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/limiter"
)

// The limits of messages to Microsoft Teams. Source: "Create Incoming Webhooks" in the Teams
// platform's documentation: 28 KB per message and four requests per second.
const (
	maxTeamsMessage = 28_000 // bytes
	maxTeamsDetails = 50
	maxTeamsActions = 6 // further actions are not shown
	maxTeamsTitle   = 250
)

// NewTeams returns a notifier that posts each alert to a channel or chat of Microsoft Teams as an
// adaptive card: red when it fires, green when it resolves. c.URL is the address of a workflow that
// starts when a Teams webhook request is received. All texts are shown as plain text: markup and
// mentions in them have no effect. An annotation that is an http or https address becomes a button.
// Texts are cut so that the message has at most 28 kB. Notify waits if necessary so that at most
// four messages per second are sent. NewTeams panics with the error of c.Validate if there is one.
func NewTeams(c Config) alert.Notifier {
	e := newEndpoint(c, "teams", 4*time.Hour)
	e.pace = newRateLimiter(limiter.PerSecond(3), 1) // at most four in any second
	return &webhook{endpoint: e, message: func(a alert.Alert) ([]byte, error) {
		return fitMessage(maxTeamsMessage, func(n int) any { return newTeamsMessage(a, n) })
	}}
}

type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	ContentURL  *string   `json:"contentUrl"` // null, as in Microsoft's example
	Content     teamsCard `json:"content"`
}

// teamsCard is an adaptive card of version 1.2, the first version that has RichTextBlock.
type teamsCard struct {
	Schema   string            `json:"$schema"`
	Type     string            `json:"type"`
	Version  string            `json:"version"`
	Fallback string            `json:"fallbackText"`
	Teams    map[string]string `json:"msteams"`
	Body     []teamsBlock      `json:"body"`
	Actions  []teamsAction     `json:"actions,omitempty"`
}

// teamsBlock is a RichTextBlock. Unlike a TextBlock, its texts are not Markdown.
type teamsBlock struct {
	Type    string     `json:"type"`
	Spacing string     `json:"spacing,omitempty"`
	Inlines []teamsRun `json:"inlines"`
}

type teamsRun struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Weight string `json:"weight,omitempty"`
	Size   string `json:"size,omitempty"`
	Color  string `json:"color,omitempty"`
}

type teamsAction struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// newTeamsMessage returns the message of an alert, whose texts have at most n characters each.
func newTeamsMessage(a alert.Alert, n int) teamsMessage {
	color := "attention"
	if a.State == alert.Resolved {
		color = "good"
	}
	heading := shortened(title(a), min(n, maxTeamsTitle))
	card := teamsCard{
		Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.2",
		Fallback: heading, Teams: map[string]string{"width": "Full"},
		Body: []teamsBlock{
			textBlock("", teamsRun{Text: heading, Weight: "bolder", Size: "medium", Color: color}),
			textBlock("small", teamsRun{Text: shortened(a.Summary, n)}),
			textBlock("small", teamsRun{Text: timesText(a)}),
		},
	}
	labels, annotations := details(a)
	rest := labels
	for _, d := range annotations {
		if isLink(d.value) && len(d.value) <= n && len(card.Actions) < maxTeamsActions {
			card.Actions = append(card.Actions, teamsAction{"Action.OpenUrl", shortened(d.name, n), d.value})
		} else {
			rest = append(rest, d)
		}
	}
	shown := rest[:min(len(rest), maxTeamsDetails)]
	for _, d := range shown {
		card.Body = append(card.Body, textBlock("none", teamsRun{Text: shortened(d.name, n) + ": ", Weight: "bolder"}, teamsRun{Text: shortened(d.value, n)}))
	}
	if more := len(rest) - len(shown); more > 0 {
		card.Body = append(card.Body, textBlock("none", teamsRun{Text: fmt.Sprintf("… and %d more", more)}))
	}
	return teamsMessage{"message", []teamsAttachment{{ContentType: "application/vnd.microsoft.card.adaptive", Content: card}}}
}

func textBlock(spacing string, runs ...teamsRun) teamsBlock {
	for i := range runs {
		runs[i].Type = "TextRun"
	}
	return teamsBlock{Type: "RichTextBlock", Spacing: spacing, Inlines: runs}
}

// timesText returns when an alert fired and resolved, in UTC.
func timesText(a alert.Alert) string {
	text := "fired " + a.StartsAt.UTC().Format(time.RFC3339)
	if a.State == alert.Resolved {
		text += ", resolved " + a.EndsAt.UTC().Format(time.RFC3339)
	}
	return text
}
