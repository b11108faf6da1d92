package scenario

import (
	"math"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Column is one figure of a table.
type Column struct {
	Title string
	// Of returns the figure of one run: positive infinity for a time that never came, and NaN where
	// there is no figure.
	Of func(sim.Figures) float64
	// Unit is "%", "s", "ms" or empty.
	Unit string
	// More is true where more is better.
	More bool
	// Total is true for a figure of the counts of all runs together, in place of a median.
	Total bool
}

// The figures of the tables. Shares are of the calls that were offered.
var (
	good      = shareColumn("good", func(f sim.Figures) (int, int) { return f.Good, f.Offered }, true)
	failed    = shareColumn("failed", func(f sim.Figures) (int, int) { return f.Failed, f.Offered }, false)
	refused   = shareColumn("refused", func(f sim.Figures) (int, int) { return f.Refused, f.Offered }, false)
	goodAfter = shareColumn("good after", func(f sim.Figures) (int, int) { return f.GoodAfter, f.OfferedAfter }, true)

	goodMeanwhile    = shareColumn("good meanwhile", func(f sim.Figures) (int, int) { return f.GoodMeanwhile, f.OfferedMeanwhile }, true)
	failedMeanwhile  = shareColumn("failed meanwhile", func(f sim.Figures) (int, int) { return f.FailedMeanwhile, f.OfferedMeanwhile }, false)
	refusedMeanwhile = shareColumn("refused meanwhile", func(f sim.Figures) (int, int) { return f.RefusedMeanwhile, f.OfferedMeanwhile }, false)
	sentMeanwhile    = shareColumn("sent meanwhile", func(f sim.Figures) (int, int) { return f.SentMeanwhile, f.OfferedMeanwhile }, false)

	wasted = Column{Title: "wasted work", Unit: "%", Of: func(f sim.Figures) float64 {
		return 100 * ratio(float64(f.Wasted), float64(f.Worked))
	}}
	protectedAfter = Column{Title: "protected after", Unit: "s", Of: func(f sim.Figures) float64 { return secondsSince(f.UntilProtected) }}
	backAfter      = Column{Title: "back after", Unit: "s", Of: func(f sim.Figures) float64 { return secondsSince(f.UntilBack) }}

	offered    = Column{Title: "calls", More: true, Of: func(f sim.Figures) float64 { return float64(f.Offered) }}
	openings   = Column{Title: "openings", Of: func(f sim.Figures) float64 { return float64(f.Openings) }}
	reopenings = Column{Title: "openings meanwhile", Of: func(f sim.Figures) float64 { return float64(f.OpeningsMeanwhile) }}
	badSent    = Column{Title: "bad calls before it opened", Of: func(f sim.Figures) float64 { return float64(f.BadSentBeforeOpen) }}
	medianWait = Column{Title: "median wait", Unit: "ms", Of: func(f sim.Figures) float64 { return milliseconds(f.Wait) }}
	slowest    = Column{Title: "longest wait", Unit: "ms", Of: func(f sim.Figures) float64 { return milliseconds(f.Slowest) }}
	crowd      = Column{Title: "tries in the same 10 ms", Unit: "%", Of: func(f sim.Figures) float64 { return 100 * f.Crowd }}

	falseRefusals = Column{Title: "false refusals per million", Total: true, Of: func(f sim.Figures) float64 {
		return 1e6 * ratio(float64(f.FalseRefusals), float64(f.Offered))
	}}
	unhurriedRefused = Column{Title: "others refused per million", Total: true, Of: func(f sim.Figures) float64 {
		return 1e6 * ratio(float64(f.RefusedUnhurried), float64(f.OfferedUnhurried))
	}}
	allOpenings = Column{Title: "openings of all seeds", Total: true, Of: func(f sim.Figures) float64 { return float64(f.Openings) }}
)

// falseTrips are the openings while nothing was wrong.
var falseTrips = Column{Title: "false trips per million", Total: true, Of: func(f sim.Figures) float64 {
	return 1e6 * ratio(float64(f.Openings-f.OpeningsMeanwhile), float64(f.Offered))
}}

// AllColumns returns the figures that are known of every scenario.
func AllColumns() []Column {
	return []Column{
		good, failed, refused, goodMeanwhile, failedMeanwhile, refusedMeanwhile, sentMeanwhile, goodAfter, wasted,
		protectedAfter, backAfter, medianWait, slowest, openings, reopenings, falseTrips, falseRefusals,
	}
}

// shareColumn returns a figure in percent of some calls.
func shareColumn(title string, of func(sim.Figures) (part, all int), more bool) Column {
	return Column{Title: title, Unit: "%", More: more, Of: func(f sim.Figures) float64 {
		part, all := of(f)
		return 100 * ratio(float64(part), float64(all))
	}}
}

// ratio divides two numbers. It returns NaN if the divisor is 0.
func ratio(part, all float64) float64 {
	if all == 0 {
		return math.NaN()
	}
	return part / all
}

// secondsSince returns a time in seconds. A negative time never came.
func secondsSince(t time.Duration) float64 {
	if t < 0 {
		return math.Inf(1)
	}
	return t.Seconds()
}

func milliseconds(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }
