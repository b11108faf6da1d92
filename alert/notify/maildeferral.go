package notify

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/weir-go/weir/alert"
)

const (
	// deferralPause is the minimum time between two attempts for recipients that the server
	// refused for now.
	deferralPause = time.Minute
	// maxDeferral is how long after the first attempt such recipients are tried again.
	maxDeferral = time.Hour
)

// deferrals holds the alerts that the server has accepted for some recipients, and refused for now
// for others. Only those are tried again. The monitor sends a refused alert alone from then on.
type deferrals struct {
	mu   sync.Mutex
	byID map[string]deferral // by the ID of the alert
}

// deferral is an alert that some recipients have yet to get. It never changes.
type deferral struct {
	state       alert.State
	startsAt    time.Time
	began, last time.Time // the first attempt and the latest
	refused     lateRecipients
}

// lateRecipients are recipients that the server refused for now, as indices of MailConfig.To, and
// its last answer. They have no addresses, so that fmt cannot print them.
type lateRecipients struct {
	indices []int
	code    int
	of      int // recipients in all
}

func (l lateRecipients) err() error {
	return &alert.DeliveryError{Refused: true, Err: fmt.Errorf("SMTP status %d to RCPT TO for %d of %d recipients", l.code, len(l.indices), l.of)}
}

// find returns the deferral of the alert in its present state, if there is one.
func (d *deferrals) find(a alert.Alert) (deferral, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.byID[a.ID]
	return found, ok && found.state == a.State && found.startsAt.Equal(a.StartsAt)
}

// record notes that the alerts were sent, and returns the error if late recipients have yet to get
// them. It reads the clock with the lock held. So if the time of an earlier attempt has not come
// yet, that attempt was in another clock, such as that of a testing/synctest bubble.
func (d *deferrals) record(alerts []alert.Alert, late lateRecipients) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := time.Now()
	maps.DeleteFunc(d.byID, func(_ string, old deferral) bool { return at.Before(old.last) || at.Sub(old.last) > maxDeferral })
	for _, a := range alerts {
		began := at
		if old, ok := d.byID[a.ID]; ok && old.state == a.State && old.startsAt.Equal(a.StartsAt) {
			began = old.began
		}
		delete(d.byID, a.ID)
		if len(late.indices) == 0 || at.Sub(began) >= maxDeferral {
			continue
		}
		if d.byID == nil {
			d.byID = map[string]deferral{}
		}
		d.byID[a.ID] = deferral{a.State, a.StartsAt, began, at, late}
		err = late.err()
	}
	return err
}
