package instrument

import "github.com/weir-go/weir/stat"

const attrSink = "weir.notifier.name"

// Instruments of notifiers.
var (
	NotifierNotifications = &stat.Instrument{
		Name: "weir.notifier.notifications", Unit: "{notification}", Kind: stat.Counter, Attrs: []string{attrSink, "weir.notifier.outcome", "error.type"},
		Help: "Notifications, by what became of them.",
	}
	NotifierAttempts = &stat.Instrument{
		Name: "weir.notifier.attempts", Unit: "{attempt}", Kind: stat.Counter, Attrs: []string{attrSink},
		Help: "Attempts at delivery.",
	}
	NotifierPending = &stat.Instrument{
		Name: "weir.notifier.pending", Unit: "{notification}", Kind: stat.UpDown, Attrs: []string{attrSink},
		Help: "Notifications that wait to be delivered.",
	}
	NotifierPendingLimit = &stat.Instrument{
		Name: "weir.notifier.pending.limit", Unit: "{notification}", Kind: stat.UpDown, Attrs: []string{attrSink},
		Help: "The most notifications that may wait.",
	}
	NotifierLastSuccess = &stat.Instrument{
		Name: "weir.notifier.last_success.timestamp", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrSink},
		Help: "Unix time of the last delivery.",
	}
	NotifierDeliveryDuration = &stat.Instrument{
		Name: "weir.notifier.delivery.duration", Unit: "s", Kind: stat.Distribution, Attrs: []string{attrSink},
		Help: "How long attempts at delivery took.", Bounds: powersOfTwo(-10, 6), // 1 ms to 64 s
	}
)

// notifiers lists them in the order of docs/metrics.md.
var notifiers = []*stat.Instrument{
	NotifierNotifications, NotifierAttempts, NotifierDeliveryDuration, NotifierPending, NotifierPendingLimit, NotifierLastSuccess,
}
