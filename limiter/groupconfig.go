package limiter

import (
	"cmp"
	"errors"
	"fmt"
)

// GroupConfig configures a [Group].
type GroupConfig[K comparable] struct {
	// Rate is the rate at which tokens are added for each key. Required.
	Rate Rate
	// Burst is the maximum number of tokens of a key, up to 2^40. Off refuses all requests. Default
	// the tokens of one second at the Rate, at least 1.
	Burst int
	// MaxKeys is the maximum number of keys that are remembered, and the most keys that can be
	// held. Default 100,000.
	MaxKeys int
	// Overflow decides what happens to a new key while all remembered keys are in use. Default
	// RefuseNew.
	Overflow Overflow
	// MaxWaiters is the maximum number of callers that may wait for one key at once. Further
	// callers get ErrQueueFull. Default no bound.
	MaxWaiters int
	// Tiers are the limits of keys that do not have the limits above. Default no tiers.
	Tiers []Tier
	// TierOf returns the index in Tiers of the tier of a key. A negative index means the limits
	// above, and a too large index means the last tier. TierOf is called once per decision and must
	// be fast. A key whose tier changes is a new key in the new tier. Required with Tiers, and not
	// allowed without.
	TierOf func(key K) int
	// Name appears in errors and metrics. A group with a name keeps statistics, summed over all
	// keys, and is a [stat.Source]. No key becomes a label of a metric. Default no name and no
	// statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
	// ShowKeys makes Busiest return the keys themselves, which may be personal data or secrets, and
	// keeps their texts. Otherwise it returns hashes of them. Requires a Name. Default false.
	ShowKeys bool
}

// Tier is the limits of some keys of a [Group].
type Tier struct {
	// Rate is the rate at which tokens are added for each key. Required.
	Rate Rate
	// Burst is the maximum number of tokens of a key, up to 2^40. Off refuses all requests. Default
	// the tokens of one second at the Rate, at least 1.
	Burst int
}

func (t Tier) validate() error { return TokenBucketConfig{Rate: t.Rate, Burst: t.Burst}.Validate() }

// Validate returns an error that names every invalid field, or nil.
func (c GroupConfig[K]) Validate() error {
	faults := []error{Tier{Rate: c.Rate, Burst: c.Burst}.validate()}
	for i, t := range c.Tiers {
		if err := t.validate(); err != nil {
			faults = append(faults, fmt.Errorf("tier %d: %w", i, err))
		}
	}
	if (c.TierOf == nil) != (len(c.Tiers) == 0) {
		faults = append(faults, fmt.Errorf("limiter: Tiers has length %d and TierOf is set: %t, must have both or neither", len(c.Tiers), c.TierOf != nil))
	}
	if c.MaxKeys < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxKeys is %d, must be at least 1 (or 0 for the default)", c.MaxKeys))
	}
	if c.ShowKeys && c.Name == "" {
		faults = append(faults, errors.New("limiter: ShowKeys is set without a Name, must have both"))
	}
	if !c.Overflow.valid() {
		faults = append(faults, fmt.Errorf("limiter: Overflow is %q, must be RefuseNew, PassNew or ShareNew", string(c.Overflow)))
	}
	return errors.Join(append(faults, validateCommon(c.MaxWaiters, c.Name, c.Shadow))...)
}

const defaultMaxKeys = 100_000

func (c GroupConfig[K]) withDefaults() GroupConfig[K] {
	c.MaxKeys = cmp.Or(c.MaxKeys, defaultMaxKeys)
	c.Overflow = cmp.Or(c.Overflow, RefuseNew)
	return c
}

// allTiers returns the limits of the group itself, followed by Tiers.
func (c GroupConfig[K]) allTiers() []Tier {
	return append([]Tier{{Rate: c.Rate, Burst: c.Burst}}, c.Tiers...)
}
