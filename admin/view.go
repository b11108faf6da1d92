package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-go/weir/stat/view"
)

// background is the context of log records that are written after the request.
var background = context.Background()

// view is an object as JSON. Values that do not apply are left out.
type objectView struct {
	Kind          string      `json:"kind"`
	Name          string      `json:"name"`
	Key           string      `json:"key,omitempty"`
	State         string      `json:"state,omitempty"`
	Rate          string      `json:"rate,omitempty"`
	Burst         int         `json:"burst,omitempty"`
	InFlight      *int        `json:"in_flight,omitempty"`
	MaxConcurrent int         `json:"max_concurrent,omitempty"`
	LimitNow      int         `json:"limit_now,omitempty"`   // of an adaptive bound
	Limit         int         `json:"limit,omitempty"`       // requests per window of a policy
	K             float64     `json:"k,omitempty"`           // of a throttle
	MaxRefusal    float64     `json:"max_refusal,omitempty"` // of a throttle
	Group         bool        `json:"group,omitempty"`
	Keys          bool        `json:"keys,omitempty"` // an action needs key or all
	Actions       []string    `json:"actions"`
	Timed         []timedView `json:"timed,omitempty"`
}

// objectList is the answer to GET objects.
type objectList struct {
	Objects []objectView `json:"objects"`
}

// memberList is the answer to GET members. More says that there are more members than are listed.
type memberList struct {
	Members []objectView `json:"members"`
	More    bool         `json:"more"`
}

// timedView is a change that ends automatically.
type timedView struct {
	What    string    `json:"what"`
	Until   time.Time `json:"until"`
	Returns string    `json:"returns_to,omitempty"`
}

// details is an object with its history.
type details struct {
	objectView

	Explain   string      `json:"explain,omitempty"`
	Busiest   []busyKey   `json:"busiest,omitempty"`
	Rules     []string    `json:"rules,omitempty"`     // of a monitor
	Notifiers []string    `json:"notifiers,omitempty"` // of a monitor
	Alerts    []alertView `json:"alerts,omitempty"`    // of a monitor, pending or firing
	// says that the monitor has more alerts than are listed
	MoreAlerts bool          `json:"more_alerts,omitempty"`
	Silences   []silenceView `json:"silences,omitempty"` // of a monitor
	History    []entry       `json:"history"`
}

// busyKey is a key that was refused often, with bounds of how often: see limiter.BusyKey.
type busyKey struct {
	Key     string `json:"key"`
	AtLeast int64  `json:"at_least"`
	AtMost  int64  `json:"at_most"`
}

// view returns an object as JSON, or only its names if a method of a guard of the user panics.
func (h *Handler) view(o *object, key string) (v objectView) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic("State or Bound", cause)
			v = objectView{Kind: o.Kind, Name: o.Name, Key: key, Actions: []string{}}
		}
	}()
	s := o.settings()
	v = objectView{Kind: o.Kind, Name: o.Name, Key: key, Group: o.Members != nil, Keys: hasKeys(o), Actions: actionsOf(o, s)}
	if o.State != nil {
		v.State = o.State()
	}
	l := limitsIn(s)
	v.Burst, v.MaxConcurrent, v.Limit, v.K, v.MaxRefusal = l.burst, l.maxConcurrent, l.quota, l.k, l.maxRefusal
	if hasSetting(s, "rate") {
		v.Rate = l.rate.String()
	}
	if o.Bound != nil {
		n, now, configured := o.Bound()
		v.InFlight, v.MaxConcurrent = &n, configured
		if now != configured {
			v.LimitNow = now
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.targets[idOf(*o, key)]; t != nil {
		v.Timed = t.timedChanges()
	}
	return v
}

// timedChanges returns the changes that end by themselves. Handler.mu is held.
func (t *target) timedChanges() (list []timedView) {
	for _, a := range []*aspect{overrides, limitChanges} {
		if x := a.of(t); !x.until.IsZero() {
			list = append(list, timedView{a.what, x.until, x.after})
		}
	}
	if t.isHeld(time.Now()) {
		list = append(list, timedView{"hold", t.held, ""})
	}
	return list
}

// actionsOf returns the verbs that are possible for an object.
func actionsOf(o *object, s []view.Setting) []string {
	list := []string{}
	add := func(possible bool, verbs ...string) {
		if possible {
			list = append(list, verbs...)
		}
	}
	add(hasSetting(s, "state") || o.PerMember, verbForce, verbRelease, verbDrain)
	add(o.Reset != nil, verbReset)
	add(o.Hold != nil, verbHold)
	add(limitFields(s) != nil, verbLimits)
	add(o.Monitor != nil, verbSilence, verbUnsilence, verbTest)
	return list
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// list serves all objects.
func (h *Handler) list(*request) (any, error) {
	list := []objectView{}
	for _, o := range h.objects() {
		list = append(list, h.view(&o, ""))
	}
	return objectList{list}, nil
}

// details serves one object.
func (h *Handler) details(r *request) (any, error) {
	o, err := h.findMember(r.action)
	if err != nil {
		return nil, err
	}
	d := details{objectView: h.view(&o, r.action.Key), History: []entry{}}
	if o.Explain != nil {
		d.Explain = o.Explain()
	}
	if o.Monitor != nil {
		d.addMonitor(o.Monitor)
	}
	if o.Busiest != nil {
		for _, k := range o.Busiest(maxBusiest) {
			d.Busiest = append(d.Busiest, busyKey{k.Key, k.AtLeast, k.AtMost})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.targets[idOf(o, r.action.Key)]; t != nil {
		d.History = append(d.History, t.acts...)
	}
	return d, nil
}

// members serves the members of a group, in no particular order.
func (h *Handler) members(r *request) (any, error) {
	o, err := h.find(r.action)
	if err != nil {
		return nil, err
	}
	if o.Members == nil {
		return nil, replyErrorf(http.StatusBadRequest, "the %s %.64q is not a group", o.Kind, o.Name)
	}
	state, list, more := r.query.Get("state"), []objectView{}, false
	for key, m := range o.Members {
		if state != "" && (m.State == nil || m.State() != state) {
			continue
		}
		if len(list) == maxMembers {
			more = true
			break
		}
		m.Kind, m.Source = o.Kind, o.Source
		list = append(list, h.view(&m, key))
	}
	return memberList{list, more}, nil
}
