package stat

// Kind is how the values of an instrument behave over time. There is no default.
type Kind string

const (
	// Counter only grows during the lifetime of its source.
	Counter Kind = "counter"
	// UpDown grows and shrinks, and may be summed over sources.
	UpDown Kind = "up-down counter"
	// Gauge is a current value that must not be summed.
	Gauge Kind = "gauge"
	// Distribution is a [Histogram] of values, which only grows, like a counter.
	Distribution Kind = "distribution"
)
