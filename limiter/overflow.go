package limiter

// Overflow selects how a [Group] treats a new key while all remembered keys are in use. The zero
// value means RefuseNew.
type Overflow string

// The values of Overflow.
const (
	// RefuseNew refuses requests of a new key, including those that would wait, until another key
	// is idle. The RetryAfter is an estimate.
	RefuseNew Overflow = "refuse-new"
	// PassNew allows requests of a new key without counting them.
	PassNew Overflow = "pass-new"
	// ShareNew gives all new keys of a tier one token bucket that they share.
	ShareNew Overflow = "share-new"
)

// valid reports whether o is one of the constants or the zero value.
func (o Overflow) valid() bool { return o == "" || o == RefuseNew || o == PassNew || o == ShareNew }
