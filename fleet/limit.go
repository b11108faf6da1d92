package fleet

import "time"

// Limit is a limit that a fleet can keep: a [Bucket], [Fixed], [Sliding] or [Log]. A [Cell] stands for the Bucket of its rate.
type Limit interface {
	// Validate returns nil for a limit that makes sense, and otherwise an error that names all faults.
	Validate() error
	// rule is the limit, ready for the scripts, with the defaults filled in.
	rule() rule
}

// rule is a limit as the scripts know it.
type rule interface {
	// kind is its name there.
	kind() string
	// keys are those of a user, given what all of them begin with. What was taken is in the first.
	keys(base string) []string
	// numbers are what the script needs to know.
	numbers() []any
	// most is how many permits can be taken at once.
	most() int
	// pace is at which rate permits come, in the long run.
	pace() (events float64, per time.Duration)
}
