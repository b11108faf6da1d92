package scenario

import "github.com/weir-go/weir/dev/proving/internal/sim"

// Custom returns a scenario for a world that a user describes, with the usual figures.
func Custom(title string, w sim.World) Scenario {
	shown := []Column{good, failed, refused}
	if w.Trouble != (sim.Span{}) {
		shown = append(shown, goodMeanwhile, sentMeanwhile, protectedAfter, backAfter)
	}
	return Scenario{
		Name:  "custom",
		Title: title,
		World: func(sim.Draw) sim.World { return w },
		Shown: append(shown, wasted, medianWait, slowest, openings, falseRefusals),
	}
}
