package notify

import (
	"context"
	"time"

	"github.com/weir-go/weir/alert"
)

// Alertmanager posts alerts to the API of an Alertmanager, version 2, which groups, silences and routes
// them. The label "instance" (see alert.Config.Instance) tells the alerts of several processes apart,
// and group_by: [alertname] joins them into one notification. For a cluster, use one Alertmanager for
// each member. All methods are safe for concurrent use.
type Alertmanager struct{ *sink }

// NewAlertmanager returns a notifier for the Alertmanager at c.URL, which is its base, as in
// http://alertmanager:9093. It panics with the error of c.Validate if there is one.
//
// As in Prometheus, a firing alert is sent with an end four repeats ahead, so that the alerts of a
// process that is gone resolve by themselves. If Repeat is Off they resolve after the resolve_timeout
// of the Alertmanager.
func NewAlertmanager(c Config) *Alertmanager {
	return &Alertmanager{newSink(c, "alertmanager", time.Minute, "api/v2/alerts")}
}

// Notify posts one alert once. Its error is an *alert.DeliveryError, unless ctx was cancelled.
func (m *Alertmanager) Notify(ctx context.Context, a alert.Alert) error {
	return m.NotifyAll(ctx, []alert.Alert{a})
}

// NotifyAll is Notify for several alerts in one request.
func (m *Alertmanager) NotifyAll(ctx context.Context, alerts []alert.Alert) error {
	now := time.Now()
	posted := make([]postedAlert, len(alerts))
	for i, a := range alerts {
		posted[i] = postedAlert{
			Labels: a.Labels, Annotations: annotationsOf(a), StartsAt: a.StartsAt, EndsAt: m.end(a, now),
		}
	}
	return m.post(ctx, posted, nil)
}

func (m *Alertmanager) end(a alert.Alert, now time.Time) time.Time {
	if a.State == alert.Resolved || m.repeat == 0 {
		return a.EndsAt
	}
	return now.Add(4 * m.repeat)
}

// postedAlert is a postableAlert of Alertmanager's OpenAPI description.
type postedAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt,omitzero"`
}
