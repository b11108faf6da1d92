package window

// Outcome is what a call says about the service.
type Outcome uint8

// The outcomes of a call.
const (
	Success Outcome = iota // the service works
	Failure                // the service failed
	Ignored                // the call says nothing about the service
)

// String returns "success", "failure" or "ignored", and "unknown" for any other value.
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Ignored:
		return "ignored"
	}
	return "unknown"
}
