package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/friend"
)

// maxAlerts is the maximum number of alerts of a monitor in an answer. The firing ones come first.
const maxAlerts = 1000

// silenceView is a silence of a monitor as JSON.
type silenceView struct {
	Silence  string    `json:"silence"`
	Match    []string  `json:"match"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

// alertView is an alert that is pending or firing as JSON.
type alertView struct {
	Rule       string `json:"rule"`
	Key        string `json:"key,omitempty"`
	State      string `json:"state"`
	Severity   string `json:"severity,omitempty"`
	SilencedBy string `json:"silenced_by,omitempty"`
}

// actOnMonitor does an action on a monitor.
func actOnMonitor(o *object, r *request, e *entry) error {
	m, v := o.Monitor, &r.body
	switch r.action.Verb {
	case verbSilence:
		s := alert.Silence{Match: v.match, EndsAt: time.Now().Add(v.duration)}
		// not truncated, because a silence replaces another one of its name
		s.Name = cmp.Or(v.silence, strings.Join(v.match, ", "))
		e.Before = silenceText(m, s.Name)
		if err := m.Silence(s); err != nil {
			return replyErrorf(http.StatusBadRequest, "%.500v", err)
		}
		e.After = silenceText(m, s.Name)
	case verbUnsilence:
		e.Before = silenceText(m, v.silence)
		if !m.EndSilence(v.silence) {
			return replyErrorf(http.StatusNotFound, "the monitor %.64q has no silence %.200q", o.Name, v.silence)
		}
	case verbTest:
		if names := notifierNames(m); !slices.Contains(names, v.notifier) {
			return replyErrorf(http.StatusNotFound, "the monitor %.64q has no notifier %.64q, only %.300q", o.Name, v.notifier, names)
		}
		if err := m.Test(r.Context(), v.notifier); err != nil {
			return replyErrorf(http.StatusBadGateway, "%.500v", err)
		}
		e.After = "delivered by " + v.notifier
	}
	return nil
}

// silenceText returns a silence as text for the history, or "" if there is none.
func silenceText(m *alert.Monitor, name string) string {
	for _, s := range m.Silences() {
		if s.Name == name {
			return truncateText(name+" until "+s.EndsAt.Format(time.RFC3339)+": "+strings.Join(s.Match, ", "), maxReason)
		}
	}
	return ""
}

// addMonitor adds the fields that only monitors have.
func (d *details) addMonitor(m *alert.Monitor) {
	d.Rules, d.Notifiers = ruleNames(m), notifierNames(m)
	for _, s := range m.Silences() {
		d.Silences = append(d.Silences, silenceView{s.Name, s.Match, s.StartsAt, s.EndsAt})
	}
	alerts := activeAlerts(m)
	d.MoreAlerts = len(alerts) > maxAlerts
	for _, a := range alerts[:min(len(alerts), maxAlerts)] {
		d.Alerts = append(d.Alerts, alertView{a.Rule, a.Key, string(a.State), a.Labels["severity"], a.SilencedBy})
	}
}

// monitors are functions of package alert beyond its API.
var monitors = alert.Inside(friend.Key{})

func ruleNames(m *alert.Monitor) (names []string) {
	for _, r := range monitors.Rules(m) {
		names = append(names, r.Name)
	}
	return names
}

func notifierNames(m *alert.Monitor) (names []string) {
	for _, n := range monitors.Notifiers(m) {
		names = append(names, n.Name)
	}
	return names
}

// activeAlerts returns the alerts that are firing, and then those that are pending.
func activeAlerts(m *alert.Monitor) []alert.Alert {
	list := slices.DeleteFunc(m.Alerts(), func(a alert.Alert) bool { return a.State == alert.Resolved })
	slices.SortStableFunc(list, func(a, b alert.Alert) int { return cmp.Compare(a.State, b.State) })
	return list
}
