package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/report"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// refusingGuard is a guard that refuses everything.
type refusingGuard struct{}

var errNo = errors.New("no")

func (refusingGuard) Call(context.Context, func(context.Context) error) error { return errNo }
func (refusingGuard) Refusal(err error) (time.Duration, bool)                 { return 0, errors.Is(err, errNo) }
func (refusingGuard) Openings() int                                           { return 0 }

// panicker is a guard that panics.
type panicker struct{ refusingGuard }

func (panicker) Call(context.Context, func(context.Context) error) error { panic("division by zero") }

func maker(name string, peer bool, g sim.Guard) sim.Maker {
	return sim.Maker{Name: name, Config: "of a test", Peer: peer, New: func(sim.Setting) sim.Guard { return g }}
}

var goodCalls = scenario.Column{Title: "good", Unit: "%", More: true, Of: func(f sim.Figures) float64 {
	return 100 * float64(f.Good) / float64(f.Offered)
}}

// world has a healthy service, which fails during the trouble.
func world(trouble sim.Span) func(sim.Draw) sim.World {
	return func(d sim.Draw) sim.World {
		w := sim.World{
			Service: sim.Service{Servers: 10, Time: sim.Exponential(d.AboutTime(20 * time.Millisecond)), Queue: 10},
			Clients: []sim.Client{{Rate: 20, Timeout: time.Second}},
			For:     20 * time.Second, Trouble: trouble,
		}
		if trouble != (sim.Span{}) {
			w.Faults = []sim.Fault{{Span: trouble, Down: true}}
		}
		return w
	}
}

func goal(text string, bound float64) scenario.Goal {
	return scenario.Goal{Text: text, Figure: goodCalls, Bound: func(scenario.Rows) float64 { return bound }}
}

func scenarios() []scenario.Scenario {
	outage := scenario.Scenario{
		Name: "outage", Title: "An outage", Text: "The service fails for five seconds.",
		World: world(sim.Span{From: 5 * time.Second, To: 10 * time.Second}),
		Shown: []scenario.Column{goodCalls}, Goals: []scenario.Goal{goal("half is good", 50), goal("all is good", 100)},
	}
	well := scenario.Scenario{
		Name: "well", Title: "A good day", Text: "Nothing happens.", World: world(sim.Span{}), GoodDay: true,
		Shown: []scenario.Column{goodCalls}, Goals: []scenario.Goal{goal("nearly all is good", 99)},
	}
	return []scenario.Scenario{outage, well}
}

func matrix(makers ...sim.Maker) report.Matrix {
	return report.Matrix{Scenarios: scenarios(), Guards: makers, Seeds: []uint64{1, 2, 3}, Workers: 2}
}

func run(m report.Matrix) []report.Result { return m.Run(func(report.Result) {}) }

func weir() sim.Maker { return guards.All()[0] }

func TestRowsOfRetriesNeedClientsThatRetryAndGiveUp(t *testing.T) {
	budget := sim.None()
	budget.Name, budget.Retries = "budget", true
	m := matrix(sim.None(), budget, weir())
	m.Seeds = m.Seeds[:1]
	retry := func(s scenario.Scenario, obeys bool) scenario.Scenario {
		world := s.World
		s.World = func(d sim.Draw) sim.World {
			w := world(d)
			w.Clients[0].Retries, w.Clients[0].ObeysRetryAfter = 1, obeys
			return w
		}
		return s
	}
	outage := m.Scenarios[0]
	m.Scenarios[0] = retry(outage, false)
	m.Scenarios = append(m.Scenarios, retry(outage, true))
	results := run(m)
	require.Len(t, results[0].Rows, 3)
	require.Equal(t, "budget", results[0].Rows[1].Guard.Name)
	require.Len(t, results[1].Rows, 2)
	require.Equal(t, "weir", results[1].Rows[1].Guard.Name)
	require.Len(t, results[2].Rows, 2, "clients that obey would never be answered")
}

func TestMatrixHasAllRowsInOrder(t *testing.T) {
	var told []string
	m := matrix(sim.None(), sim.Oracle(), weir())
	results := m.Run(func(r report.Result) { told = append(told, r.Scenario.Name) })
	require.Equal(t, []string{"well", "outage"}, told, "good days come first")
	require.Len(t, results, 2)
	require.Equal(t, "outage", results[0].Scenario.Name)
	for _, r := range results {
		require.Len(t, r.Rows, 3)
		for i, row := range r.Rows {
			require.Equal(t, m.Guards[i].Name, row.Guard.Name)
			require.Len(t, row.Runs, 3)
			for seed, f := range row.Runs {
				want := sim.Run(r.Scenario.World(sim.NewDraw(m.Seeds[seed])), m.Guards[i], m.Seeds[seed])
				if seed > 0 {
					want.Series = nil
				}
				require.Equal(t, want, f)
			}
		}
	}
}

func TestLibrariesThatRefuseOnAGoodDayAreNotPeers(t *testing.T) {
	results := run(matrix(sim.None(), maker("strict", true, refusingGuard{}), maker("gentle", true, sim.None().New(sim.Setting{})), weir()))
	for _, r := range results {
		require.Equal(t, []bool{true, false, true, true}, harmless(r), r.Scenario.Name)
	}
	m := matrix(sim.None(), maker("strict", true, refusingGuard{}))
	m.Harmless = []string{"strict"}
	require.Equal(t, []bool{false, true}, harmless(run(m)[0]), "a record decides")
}

func harmless(r report.Result) (all []bool) {
	for _, row := range r.Rows {
		all = append(all, row.Harmless)
	}
	return all
}

func TestBrokenGuardsAreNamedAndHaveNoRow(t *testing.T) {
	results := run(matrix(sim.None(), maker("bad", true, panicker{}), weir()))
	for _, r := range results {
		require.Len(t, r.Rows, 2)
		require.Len(t, r.Broken, 1)
		require.Equal(t, "bad", r.Broken[0].Guard)
		require.Contains(t, r.Broken[0].Reason, "division by zero")
	}
	require.Contains(t, page(t, results), "division by zero")
}

func TestVerdictsBindWeir(t *testing.T) {
	results := run(matrix(sim.None(), weir()))
	require.Equal(t, []string{"half is good weir true", "all is good weir false"}, verdicts(results[0]))
	own := maker(guards.Recommended, false, refusingGuard{})
	results = run(matrix(sim.None(), weir(), own))
	require.Equal(t, []string{
		"half is good weir true", "half is good weir, recommended false", "all is good weir false", "all is good weir, recommended false",
	}, verdicts(results[0]))
	results[0].Scenario.Goals = results[0].Scenario.Goals[:1]
	results[0].Scenario.Goals[0].Recommended = true
	require.Equal(t, []string{"half is good weir, recommended false"}, verdicts(results[0]))
}

func verdicts(r report.Result) (all []string) {
	for _, v := range r.Verdicts() {
		word := " false"
		if v.Reached {
			word = " true"
		}
		all = append(all, v.Goal.Text+" "+v.Guard+word)
	}
	return all
}

func TestLossesAreSaid(t *testing.T) {
	results := run(matrix(sim.None(), sim.Oracle(), maker(guards.Weir, false, refusingGuard{})))
	loss, ok := results[1].Loss()
	require.True(t, ok)
	require.Equal(t, "none", loss.Guard)
	require.InDelta(t, 0, loss.Own, 0)
	require.InDelta(t, 100, loss.Best, 1)
	require.Contains(t, page(t, results), "good is 0 %, and 100 % without any guard")

	results = run(matrix(sim.None(), weir()))
	_, ok = results[1].Loss()
	require.False(t, ok)
}

func page(t *testing.T, results []report.Result) string {
	t.Helper()
	var b strings.Builder
	p := report.Page{
		Commit: "abc", Versions: []string{"example.com/peer v1.2.3"}, Seeds: results[0].Seeds, Guards: []sim.Maker{sim.None(), weir()},
		Left: []guards.Absence{{Name: "absent", Reason: "it needs a kernel"}}, Results: results,
	}
	require.NoError(t, p.Write(&b))
	return b.String()
}

func TestPageIsTheSameForTheSameSeeds(t *testing.T) {
	m := matrix(sim.None(), sim.Oracle(), weir())
	one := page(t, run(m))
	m.Workers = 5
	require.Equal(t, one, page(t, run(m)))
	m.Seeds = []uint64{4, 5, 6}
	require.NotEqual(t, one, page(t, run(m)))
}

func TestPageSaysWhatItShows(t *testing.T) {
	text := page(t, run(matrix(sim.None(), weir(), maker("a|b", true, refusingGuard{}))))
	for _, want := range []string{
		"commit abc with 3 seeds, 1 to 3", "| example.com/peer | v1.2.3 |", "- absent: it needs a kernel.",
		"## An outage", "![An outage](protection/outage.svg)", "| guard | good, % |", "| a\\|b † | 0 |",
		"1 goals of 3", "[An outage](#an-outage)", "half is good", "**missed**",
	} {
		if want == "1 goals of 3" {
			want = "2 of 3 goals are reached."
		}
		require.Contains(t, text, want)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 100, line)
		}
	}
}

func TestTextHasTheTableAndTheGoals(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.Text(&b, run(matrix(sim.None(), weir()))[1]))
	require.Equal(t, "\nwell: A good day\n  guard  good, %\n  none       100\n  weir       100\n"+
		"  reached weir: nearly all is good: 100, ≥ 99\n", b.String())
}

func TestAllFiguresOfAllRowsAreWritten(t *testing.T) {
	var out bytes.Buffer
	results := run(matrix(sim.None(), maker("refuser", true, refusingGuard{})))
	require.NoError(t, report.Page{Results: results}.WriteFigures(&out))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*2*len(scenario.AllColumns()))
	require.Contains(t, rows, []string{"outage", "refuser", "refused", "%", "100", "100", "100"})
	require.Contains(t, rows, []string{"outage", "refuser", "sent meanwhile", "%", "0", "0", "0"})
	require.Contains(t, rows, []string{"well", "none", "false trips per million", "", "0", "0", "0"})
	require.Contains(t, rows, []string{"well", "none", "good meanwhile", "%", "NaN", "NaN", "NaN"})
}

func TestPicturesAreWellFormed(t *testing.T) {
	results := run(matrix(sim.None(), sim.Oracle(), weir(), maker("other", true, refusingGuard{})))
	for _, r := range results {
		var b bytes.Buffer
		p := report.Picture(r)
		require.NoError(t, p.Write(&b))
		require.Len(t, p.Panels, 3, "the main guards have panels")
		require.Len(t, p.Panels[0].Lines, 4)
		require.Len(t, p.Panels[0].Lines[0].Points, 20, "one per second")
		for decoder := xml.NewDecoder(&b); ; {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
	}
	outage := report.Picture(results[0]).Panels[0]
	require.Equal(t, []float64{5, 10}, []float64{outage.From, outage.To})
	for _, second := range []int{6, 8} {
		require.Equal(t, outage.Lines[0].Points[second].Y, outage.Lines[1].Points[second].Y, "all that is offered fails")
		require.Zero(t, outage.Lines[2].Points[second].Y)
	}
}
