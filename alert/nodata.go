package alert

// NoData is the verdict of an evaluation without data. The zero value means KeepLast.
type NoData string

const (
	// KeepLast repeats the previous verdict: a pending alert keeps aging, and a firing alert keeps
	// firing.
	KeepLast NoData = "keep-last"
	// Resolve means that the condition does not hold.
	Resolve NoData = "resolve"
	// Fire means that the condition holds.
	Fire NoData = "fire"
)

func (n NoData) valid() bool { return n == "" || n == KeepLast || n == Resolve || n == Fire }
