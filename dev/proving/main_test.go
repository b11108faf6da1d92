package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/report"
	"github.com/weir-go/weir/dev/proving/internal/scenario"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// settingsFor returns settings for two fast scenarios, which write into a directory of the test.
func settingsFor(t *testing.T, makers ...sim.Maker) settings {
	t.Helper()
	dir := t.TempDir()
	all := regexp.MustCompile("")
	s := settings{first: 1, seeds: 2, only: all, guards: all, docs: dir, record: filepath.Join(dir, "reached.txt")}
	s.makers = append([]sim.Maker{sim.None(), sim.Oracle()}, makers...)
	for _, sc := range scenario.All() {
		if slices.Contains([]string{"outage", "low-traffic-5s", "good-day-20-rare"}, sc.Name) {
			s.scenarios = append(s.scenarios, sc)
		}
	}
	require.Len(t, s.scenarios, 3)
	return s
}

// refusingGuard is weir, broken: it refuses everything.
type refusingGuard struct{}

var errNo = errors.New("no")

func (refusingGuard) Call(context.Context, func(context.Context) error) error { return errNo }
func (refusingGuard) Refusal(err error) (time.Duration, bool)                 { return 0, errors.Is(err, errNo) }
func (refusingGuard) Openings() int                                           { return 0 }

func TestQuickFailsWhereAReachedGoalIsLost(t *testing.T) {
	s := settingsFor(t, guards.All()[0])
	require.NoError(t, runEverything(io.Discard, s))
	require.NoError(t, runQuick(io.Discard, s))

	s.makers[2].New = func(sim.Setting) sim.Guard { return refusingGuard{} }
	err := runQuick(io.Discard, s)
	require.ErrorContains(t, err, "good-day-20-rare: weir: at most one call refused in a million")
	require.ErrorContains(t, err, "low-traffic-5s: weir: recovery noticed")
}

func TestWholeWritesThePageTheChartsAndTheRecord(t *testing.T) {
	s := settingsFor(t, guards.All()[0])
	stale := filepath.Join(s.docs, "protection", "gone.svg")
	require.NoError(t, os.MkdirAll(filepath.Dir(stale), 0o755))
	require.NoError(t, os.WriteFile(stale, nil, 0o600))
	harmPart := "## Whom it harms\n\nA table.\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.docs, "protection.md"), []byte("# Old\n\n"+harmPart), 0o600))
	var text strings.Builder
	require.NoError(t, runEverything(&text, s))
	require.Contains(t, text.String(), "outage: Total outage")

	page := read(t, s.docs, "protection.md")
	require.Contains(t, page, "2 seeds, 1 to 2")
	require.NotContains(t, page, "# Old")
	require.True(t, strings.HasSuffix(page, "\n\n"+harmPart), "another command writes this part")
	require.Contains(t, read(t, s.record), "good-day-20-rare\tweir\t")
	require.NoFileExists(t, stale, "the chart of a scenario that is gone")
	for _, sc := range s.scenarios {
		require.Contains(t, page, "protection/"+sc.Name+".svg")
		require.Contains(t, read(t, s.docs, "protection", "figures.csv"), "\n"+sc.Name+",")
		require.Contains(t, read(t, s.docs, "protection", sc.Name+".svg"), "</svg>")
	}
}

// The next run writes the texts of the code, so a text that is changed in docs/protection.md alone
// would be lost.
func TestTheWrittenPageHasTheTextsOfTheCode(t *testing.T) {
	joinLines := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	page := joinLines(read(t, "..", "..", "docs", "protection.md"))
	var withoutRuns strings.Builder
	require.NoError(t, report.Page{Guards: guards.All(), Left: guards.Left()}.Write(&withoutRuns))
	// The rows of a table and the items of a list are compared one by one.
	for text := range strings.SplitSeq(regexp.MustCompile(`\n([|-])`).ReplaceAllString(withoutRuns.String(), "\n\n$1"), "\n\n") {
		if !strings.HasPrefix(text, "These figures were made at commit") && text != "0 of 0 goals are reached." {
			require.Contains(t, page, joinLines(text))
		}
	}
	for _, sc := range scenario.All() {
		require.Contains(t, page, "## "+sc.Title+" "+joinLines(sc.Text), sc.Name)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

func TestAPartIsRunWithoutWritingAnything(t *testing.T) {
	s := settingsFor(t, guards.All()[0])
	s.only = regexp.MustCompile("low")
	var text strings.Builder
	require.NoError(t, runEverything(&text, s))
	require.NotContains(t, text.String(), "outage")
	require.NoFileExists(t, s.record)
}

func TestCommandsAndFlags(t *testing.T) {
	for args, want := range map[string]string{
		"fast":                 `unknown command "fast": use whole or quick`,
		"quick -seeds 0":       "-seeds must be at least 1",
		"quick -only (":        "error parsing regexp",
		"whole -guards [":      "error parsing regexp",
		"quick -record .":      "is a directory",
		"quick -first minus":   "invalid value",
		"quick -undefined yes": "flag provided but not defined",
	} {
		require.ErrorContains(t, run(strings.Fields(args), io.Discard), want, args)
	}
}

func TestQuickRunsTheMainScenarios(t *testing.T) {
	var text strings.Builder
	record := filepath.Join(t.TempDir(), "none.txt")
	require.NoError(t, run([]string{"quick", "-only", "low-traffic", "-seeds", "1", "-record", record}, &text))
	require.Contains(t, text.String(), "low-traffic-5s")
	require.NotContains(t, text.String(), "low-traffic-1m", "this one is not quick")
	require.Contains(t, text.String(), "gobreaker, tuned")
}

func TestPeersAreNamedWithTheirVersions(t *testing.T) {
	for _, path := range []string{"github.com/sony/gobreaker/v2", "github.com/alibaba/sentinel-golang"} {
		require.True(t, isPeer(path))
		text := read(t, "go.mod")
		require.Contains(t, text, "\t"+path+" v")
	}
	require.NotEmpty(t, peerVersions())
	require.NotEmpty(t, commitText(t.Context()))
}
