package fleet

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// Busiest returns up to n of the keys that this process has refused most often, with the most
// refused key first. Refusals by OnOutage and of callers that would have to wait too long count
// too. Counting costs nothing for allowed requests. See [limiter.BusyKey] for the bounds of the
// counts, and Config.ShowKeys for what is shown of a key.
func (l *Limiter) Busiest(n int) []limiter.BusyKey { return l.refusals.Busiest(n) }

// refusalShards is a number of keys for which a limiter.Group has some locks. It stores no key.
const refusalShards = 1000

// newRefusals returns a group that is asked only for more than it ever allows, so that it stores
// only the counts of the keys that it refuses most often.
func newRefusals(name string, showKeys bool) *limiter.Group[string] {
	return limiter.NewGroup(limiter.GroupConfig[string]{
		Name: name, Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: refusalShards, ShowKeys: showKeys,
	})
}

func (l *Limiter) countRefusedKey(key string) { l.refusals.Get(key).Take(2) }
