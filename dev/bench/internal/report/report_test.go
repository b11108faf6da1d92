package report_test

import (
	"os"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/binary"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/memory"
	"github.com/weir-go/weir/dev/bench/internal/report"
	"github.com/weir-go/weir/dev/bench/internal/rows"
	"github.com/weir-go/weir/dev/bench/internal/scale"
)

// turns returns ten turns in which weir costs a and the peer costs b.
func turns(a, b float64) (c measure.Comparison) {
	for range 10 {
		c.Weir, c.Peer, c.Ratio = append(c.Weir, a), append(c.Peer, b), append(c.Ratio, a/b)
	}
	return c
}

// outcome returns a row with the same result in all modes.
func outcome(name string, bound, a, b float64) rows.Outcome {
	o := rows.Outcome{Row: rows.Row{
		Name: name, Main: name == "kept", Serial: bound, Threads: bound, Why: "the peer does less",
		Weir: rows.Side{Name: "Weir.Do", Does: "all"}, Peer: rows.Side{Name: "Peer.Do", Does: "some"},
	}, Modes: measure.Modes(), Allocs: rows.Allocs{Peer: 14}}
	for range o.Modes {
		o.In = append(o.In, turns(a, b))
	}
	return o
}

func results() report.Results {
	return report.Results{
		Machine:  report.Machine{CPU: "Abacus 9", Cores: 2, Go: "go1.26", Date: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)},
		Versions: []string{"example.org/peer v1.2.3"},
		Floors:   []rows.Floor{{Side: rows.Side{Name: "clock", Does: "one reading"}, Costs: []measure.Spread{{Median: 22.2}, {Median: 11.1}, {Median: 11.3}}}},
		Outcomes: []rows.Outcome{outcome("kept", 0.5, 40, 100), outcome("lost", 0.5, 60, 100), outcome("slow", 0, 60, 30)},
		Fleet: []rows.Outcome{{
			Row: rows.Row{
				Name: "asked", Goroutines8: 0.5, Goroutines64: 0.5, Why: "a round trip",
				Weir: rows.Side{Name: "Weir.Ask", Does: "at once"}, Peer: rows.Side{Name: "Peer.Ask", Does: "one by one"},
			},
			Modes: rows.FleetModes(), In: []measure.Comparison{turns(40_000, 20_000), turns(8_000, 20_000), turns(12_000, 20_000)},
		}},
		Scaling: []report.Scaling{{
			Experiment: scale.Experiment{Title: "Objects", File: "objects", X: "objects", Y: "ns", Sizes: []int{1, 10, 100}, Why: "It just is."},
			Curves: []scale.Curve{
				{Line: scale.Line{Name: "short"}, Costs: []float64{5, 6}},
				{Line: scale.Line{Name: "long"}, Costs: []float64{5, 50, 500}},
			},
		}},
		Programs:   []binary.Program{{Name: "a valve", Adds: 412_345, Init: 0.0321}},
		Protection: report.Protection{Goals: "6 of 7 goals are reached.", Harm: "| guard | harms |\n|---|--:|\n| weir | 1 |\n"},
		Memory:     []memory.Size{{Name: "key", Bytes: 44.2, Bound: 56}, {Name: "breaker", Bytes: 2384}},
	}
}

// The next measurement writes the text of the template, so a text that is changed in RESULTS.md
// alone would be lost.
func TestThePageHasTheTextOfTheTemplate(t *testing.T) {
	page, err := os.ReadFile("../../RESULTS.md")
	require.NoError(t, err)
	words := joinLines(string(page))
	has := func(text string) { // without printing the whole page
		if !strings.Contains(words, joinLines(text)) {
			t.Errorf("RESULTS.md lacks: %s", text)
		}
	}
	source, err := template.ParseFiles("results.md.tmpl")
	require.NoError(t, err)
	for _, node := range source.Root.Nodes {
		if text, ok := node.(*parse.TextNode); ok {
			for paragraph := range strings.SplitSeq(string(text.Text), "\n\n") {
				has(paragraph)
			}
		}
	}
	for _, e := range scale.All(time.Second) {
		has(e.Why)
	}
}

func TestLongLinesAreWrapped(t *testing.T) {
	r := results()
	r.Outcomes[2].Why = strings.Repeat("it has a reason, ", 20) + strings.Repeat("x", 120)
	r.Scaling[0].Why = strings.Repeat("gets ünicode ", 30)
	var b strings.Builder
	require.NoError(t, r.Write(&b))
	require.Contains(t, b.String(), "it has a reason,\n  it has a reason,", "an item of a list is indented")
	for line := range strings.Lines(b.String()) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "|") && strings.Contains(text, " ") {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
		}
	}
	require.Contains(t, joinLines(b.String()), joinLines(r.Scaling[0].Why))
}

func joinLines(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestResultsHaveEveryFigure(t *testing.T) {
	var b strings.Builder
	require.NoError(t, results().Write(&b))
	for _, line := range []string{
		"These figures were measured on\nAbacus 9, 2 cores, ",
		"on 2 January 2026, 03:04 UTC",
		"The peers are:\n\n- example.org/peer v1.2.3\n\n",
		"| `clock`: one reading | 22.2 | 11.1 | 11.3 |",
		"| floor | serial ns | 2 threads ns | 8 goroutines ns |\n| --- | --: | --: | --: |",
		"| comparison | weir | peer | note |\n| --- | --- | --- | --- |",
		"| kept | 40 / 100 | 0.4 ±0% | 0.50 | 40 / 100 | 0.4 ±0% (0.40) | 0.50 | 0.4 ±0% | 0 / 14 |",
		"| lost | 60 / 100 | 0.6 ±0% | 0.50, MISSED | 60 / 100 | 0.6 ±0% (0.60) | 0.50, MISSED | 0.6 ±0% | 0 / 14 |",
		"| slow | 60 / 30 | 2 ±0% |  | 60 / 30 | 2 ±0% (2.00) |  | 2 ±0% | 0 / 14 |",
		"- slow: the peer does less.",
		"| comparison | 1 caller: weir / peer, per second | ratio | bound | 8 callers: weir / peer, per second | ratio | bound |",
		"| asked | 25000 / 50000 | 2 ±0% |  | 125000 / 50000 | 0.4 ±0% | 0.50 | 83300 / 50000 | 0.6 ±0% | 0.50, MISSED |",
		"- asked: a round trip.",
		"| asked | `Weir.Ask`: at once | `Peer.Ask`: one by one | a round trip |",
		"| kept | `Weir.Do`: all | `Peer.Do`: some | the peer does less |",
		"![Objects](results/objects.svg)",
		"| ns, at objects | 1 | 10 | 100 |",
		"| short | 5 | 6 |  |",
		"| long | 5 | 50 | 500 |",
		"It just is.",
		"| a valve | 0.41 | 0.032 |",
		"6 of 7 goals are reached.",
		"| weir | 1 |",
		"| kept | 40 | 100 | 0.40 | 0.40 | Peer.Do |",
		"| key | 44.2 | 56 |",
		"| breaker | 2384 |  |",
	} {
		require.Contains(t, b.String(), line)
	}
}

func TestResultsNameSlowRows(t *testing.T) {
	r := results()
	require.Len(t, r.Slower(), 2)
	r.Outcomes[2].Floor, r.Fleet[0].Floor = true, true
	require.Empty(t, r.Slower(), "the floor is not a slower peer")
}

func TestProtectionIsReadFromItsPage(t *testing.T) {
	p, err := report.ReadProtection("../../../../docs/protection.md")
	require.NoError(t, err)
	require.Regexp(t, `^\d+ of \d+ goals are reached\.$`, p.Goals)
	require.Regexp(t, `^\| guard \| judged \| harms \| healthy \| mostly well \|\n\|---\|(--:\|){4}\n(\| [^|]+ \| \d+ \| \d+ \| \d+ of \d+ \| \d+ of \d+ \|\n){2,}$`, p.Harm)

	_, err = report.ReadProtection("report_test.go")
	require.ErrorContains(t, err, "does not say")
}

func TestTextHasOneLinePerMode(t *testing.T) {
	o := outcome("lost", 0.5, 60, 100)
	o.In[1].Canary = []float64{0.9, 0.9, 0.9}
	var b strings.Builder
	require.NoError(t, report.FloorLines(&b, results().Floors[0], measure.Modes()...))
	require.Regexp(t, `^floor: clock +serial +22.2\nfloor: clock +2 threads +11.1\nfloor: clock +8 gor.* +11.3\n$`, b.String())
	b.Reset()
	require.NoError(t, report.Header(&b))
	require.NoError(t, report.Lines(&b, o))
	lines := strings.Split(b.String(), "\n")
	require.Regexp(t, `^comparison +weir ns +peer ns +ratio +bound`, lines[0])
	require.Regexp(t, `^lost +serial +60 +100 +0.6 ±0% +0.50 +MISSED, 0/14 allocs$`, lines[1])
	require.Regexp(t, `^lost +2 threads +60 +100 +0.6 ±0% +0.50 +not judged, worst 0.60, canary 0.90$`, lines[2])
	require.Regexp(t, `^lost +8 goroutines on 2 cores +60 +100 +0.6 ±0% +$`, lines[3])
}

func TestThisMachineHasAName(t *testing.T) {
	m := report.ThisMachine()
	require.NotEmpty(t, m.CPU)
	require.Positive(t, m.Cores)
	require.Contains(t, m.String(), m.Go)
}
