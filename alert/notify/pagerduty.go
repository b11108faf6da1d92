package notify

import (
	"cmp"
	"errors"
	"regexp"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/limiter"
)

// The limits of PagerDuty's Events API v2. Source: "Send an Alert Event", "Events API v2 Overview"
// and "Events API Rate Limits" in PagerDuty's developer documentation.
const (
	pagerDutyURL        = "https://events.pagerduty.com/v2/enqueue"
	maxPagerDutyEvent   = 512_000 // bytes: "512 KB", with 1,000 bytes per KB
	maxPagerDutySummary = 1024    // characters
	maxPagerDutyLinks   = 20      // not documented
)

// pagerDutyKey is the form of an integration key.
var pagerDutyKey = regexp.MustCompile(`^[0-9A-Za-z]{32}$`)

// NewPagerDuty returns a notifier that sends events to version 2 of PagerDuty's Events API. A
// firing alert triggers a PagerDuty alert, and the resolved alert resolves it: they share the
// dedup_key, which is Alert.ID. key is the integration key (routing key) of 32 letters and digits.
// c.URL is by default https://events.pagerduty.com/v2/enqueue; accounts in the EU need
// https://events.eu.pagerduty.com/v2/enqueue.
//
// The label "severity" determines PagerDuty's severity: "critical" and "page" become critical,
// "warning", "warn" and "ticket" become warning, "info" becomes info, and anything else becomes
// error. Annotations that are http or https addresses become links. Texts are cut so that the
// summary has at most 1,024 characters and the event at most 512 kB. Notify waits if necessary so
// that at most 120 events per minute are sent, the limit of an integration key. Several processes
// with one key share that limit: PagerDuty then answers 429, and the monitor tries again.
//
// NewPagerDuty panics if the key has a different form, or with the error of c.Validate if there is
// one. The key appears in no error and no printed form.
func NewPagerDuty(c Config, key Secret) alert.Notifier {
	if !pagerDutyKey.MatchString(string(key)) {
		panic(errors.New("notify: the key (not shown) must be 32 letters and digits"))
	}
	c.URL = cmp.Or(c.URL, pagerDutyURL)
	e := newEndpoint(c, "pagerduty", 4*time.Hour)
	// A burst of 20 events and a rate of 100 per minute allow at most 120 events in any minute.
	e.pace = newRateLimiter(limiter.Per(100, time.Minute), 20)
	e.pauseAfter429 = 30 * time.Second
	return &webhook{endpoint: e, message: func(a alert.Alert) ([]byte, error) {
		return fitMessage(maxPagerDutyEvent, func(n int) any { return newPagerDutyEvent(string(key), a, n) })
	}}
}

type pagerDutyEvent struct {
	RoutingKey string           `json:"routing_key"`
	Action     string           `json:"event_action"`
	DedupKey   string           `json:"dedup_key"`
	Client     string           `json:"client"`
	Payload    pagerDutyPayload `json:"payload"`
	Links      []pagerDutyLink  `json:"links,omitempty"`
}

type pagerDutyPayload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp time.Time         `json:"timestamp"`
	Component string            `json:"component,omitempty"`
	Class     string            `json:"class"`
	Details   map[string]string `json:"custom_details"`
}

type pagerDutyLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// newPagerDutyEvent returns the event of an alert, whose details have at most n characters each.
func newPagerDutyEvent(key string, a alert.Alert, n int) pagerDutyEvent {
	e := pagerDutyEvent{
		RoutingKey: key, Action: "trigger", DedupKey: a.ID, Client: "weir",
		Payload: pagerDutyPayload{
			Summary:  shortened(title(a)+": "+a.Summary, maxPagerDutySummary),
			Source:   shortened(cmp.Or(a.Labels["instance"], a.Key, "weir"), min(n, maxPagerDutySummary)),
			Severity: pagerDutySeverity(a.Labels["severity"]), Timestamp: a.StartsAt,
			Component: shortened(a.Key, min(n, maxPagerDutySummary)), Class: shortened(a.Rule, min(n, maxPagerDutySummary)),
			Details: map[string]string{"summary": shortened(a.Summary, n), "value": valueText(a)},
		},
	}
	if a.State == alert.Resolved {
		e.Action, e.Payload.Timestamp = "resolve", a.EndsAt
	}
	labels, annotations := details(a)
	for _, d := range labels {
		e.Payload.Details[d.name] = shortened(d.value, n)
	}
	for _, d := range annotations {
		if isLink(d.value) && len(d.value) <= n && len(e.Links) < maxPagerDutyLinks {
			e.Links = append(e.Links, pagerDutyLink{d.value, d.name})
		} else {
			e.Payload.Details[d.name] = shortened(d.value, n)
		}
	}
	return e
}

func pagerDutySeverity(label string) string {
	switch label {
	case "critical", "page":
		return "critical"
	case "warning", "warn", "ticket":
		return "warning"
	case "info":
		return "info"
	}
	return "error"
}
