package notify

import (
	"context"
	"time"

	"github.com/weir-go/weir/alert"
)

// alertmanager posts alerts to version 2 of the API of an Alertmanager.
type alertmanager struct{ *endpoint }

// NewAlertmanager returns a notifier for the Alertmanager with the base URL c.URL, such as
// http://alertmanager:9093, which groups, silences and routes the alerts. It panics with the error
// of c.Validate if there is one.
//
// The label "instance" tells the alerts of several processes apart: see alert.Config.Instance. The
// setting group_by: [alertname] of the Alertmanager joins the alerts of all processes into one
// notification. For a cluster of Alertmanagers, use one notifier per member.
//
// As in Prometheus, a firing alert is sent with an end time of four times Repeat from now, so that
// the alerts of a dead process resolve by themselves. If Repeat is Off, they resolve after the
// resolve_timeout of the Alertmanager.
func NewAlertmanager(c Config) alert.Notifier {
	return &alertmanager{newEndpoint(c, "alertmanager", time.Minute, "api/v2/alerts")}
}

// Notify posts the alert once. Its error is an *alert.DeliveryError, unless ctx was canceled.
func (m *alertmanager) Notify(ctx context.Context, a alert.Alert) error {
	return m.NotifyAll(ctx, []alert.Alert{a})
}

// NotifyAll posts the alerts once, in one request. Its errors are those of Notify.
func (m *alertmanager) NotifyAll(ctx context.Context, alerts []alert.Alert) error {
	now := time.Now()
	posted := make([]postedAlert, len(alerts))
	for i, a := range alerts {
		posted[i] = postedAlert{
			Labels: a.Labels, Annotations: annotationsOf(a), StartsAt: a.StartsAt, EndsAt: m.endsAt(a, now),
		}
	}
	body, err := encode(posted)
	if err != nil {
		return err
	}
	return m.post(ctx, m.url(), body, nil)
}

// OwnSilences returns true: the silences of the Alertmanager apply, and those of the monitor do
// not. If the monitor did not repeat a silenced alert, the Alertmanager would resolve it.
func (m *alertmanager) OwnSilences() bool { return true }

// endsAt returns when the alert ends if it is not repeated.
func (m *alertmanager) endsAt(a alert.Alert, now time.Time) time.Time {
	if a.State == alert.Resolved || m.repeat == 0 {
		return a.EndsAt
	}
	return now.Add(4 * m.repeat)
}

// postedAlert is the postableAlert of Alertmanager's OpenAPI description.
type postedAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt,omitzero"`
}
