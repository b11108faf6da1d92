package weirconfig

import (
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir/stat"
)

const fileAttr = "weir.config.file"

// The instruments equal those of the core, which describes them to exporters.
var (
	updates = &stat.Instrument{
		Name: "weir.config.updates", Unit: "{update}", Kind: stat.Counter, Attrs: []string{fileAttr, "weir.config.outcome"},
		Help: "Updates of the configuration while the program runs, by outcome: applied, or refused, which changes nothing.",
	}
	lastRefused = &stat.Instrument{
		Name: "weir.config.refused", Unit: "{file}", Kind: stat.UpDown, Attrs: []string{fileAttr},
		Help: "1 if the last update was refused, so that the program runs with an earlier file, and 0 otherwise.",
	}
	appliedAt = &stat.Instrument{
		Name: "weir.config.applied.timestamp", Unit: "s", Kind: stat.Gauge, Attrs: []string{fileAttr},
		Help: "Unix time at which the configuration in effect was applied.",
	}
)

// status is how the updates of a set have ended.
type status struct {
	mu               sync.Mutex
	applied, refused int64
	since            time.Time // when the configuration in effect was applied
	fault            error     // of the last update, nil if it was applied
	faultAt          time.Time
	series           [4]*stat.Series
}

// newStatus returns the status of a set that was made of the file with the name.
func newStatus(file string) *status {
	return &status{since: time.Now(), series: [4]*stat.Series{
		updates.Series(file, "applied"), updates.Series(file, "refused"), lastRefused.Series(file), appliedAt.Series(file),
	}}
}

// noteResult notes how an update has ended, and returns err.
func (s *status) noteResult(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
	if err != nil {
		s.refused++
		s.faultAt = time.Now()
		return err
	}
	s.applied++
	s.since = time.Now()
	return nil
}

// Observe yields the metrics of the file: how many updates were applied and refused, whether the
// last one was refused, and since when the configuration is in effect.
func (s *Set) Observe(yield func(*stat.Series, float64) bool) {
	s.status.mu.Lock()
	refused := 0.0
	if s.status.fault != nil {
		refused = 1
	}
	values := [4]float64{float64(s.status.applied), float64(s.status.refused), refused, float64(s.status.since.UnixNano()) / 1e9}
	s.status.mu.Unlock()
	for i, series := range s.status.series {
		if !yield(series, values[i]) {
			return
		}
	}
}

// Notice returns a text for the operators of the program if [Set.Update] or [Set.Watch] has refused
// the last update. The text says when it was refused, since when the configuration in effect is
// used, and which faults the update has, with their files and lines. Otherwise Notice returns "".
// The live page of package dashboard shows it.
func (s *Set) Notice() string {
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	if s.status.fault == nil {
		return ""
	}
	return fmt.Sprintf("The configuration was refused at %s. That of %s stays in effect.\n%v",
		s.status.faultAt.UTC().Format(time.RFC3339), s.status.since.UTC().Format(time.RFC3339), s.status.fault)
}
