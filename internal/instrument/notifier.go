package instrument

const notifierName = "weir.notifier.name"

// Instruments of notifiers.
var (
	NotifierNotifications = counter("weir.notifier.notifications", "{notification}",
		"Notifications, by outcome.", notifierName, "weir.notifier.outcome", "error.type")
	NotifierAttempts = counter("weir.notifier.attempts", "{attempt}",
		"Attempts at delivery.", notifierName)
	NotifierDeliveryDuration = durations("weir.notifier.delivery.duration",
		"Duration of attempts at delivery.", deliveryBounds, notifierName)
	NotifierPending = upDown("weir.notifier.pending", "{notification}",
		"Notifications that are not delivered yet, including those of an attempt in progress.", notifierName)
	NotifierPendingLimit = upDown("weir.notifier.pending_limit", "{notification}",
		"Maximum of notifications that may wait.", notifierName)
	NotifierLastSuccess = gauge("weir.notifier.last_success.timestamp", "s",
		"Unix time of the last delivery.", notifierName)
)
