package harm_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/harm"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func verdict(guard string, class harm.Class, harmful bool, stuck int, late bool) harm.Verdict {
	return harm.Verdict{
		Guard: harm.Guard{Maker: sim.Maker{Name: guard}}, Class: class, Harmful: harmful, Stuck: stuck, Late: late, Ends: 3, Calls: 30_000,
	}
}

func TestTheListOfBrokenPromisesMayOnlyShrink(t *testing.T) {
	known, err := harm.ReadList(strings.NewReader("# a comment\n\nfirst\tweir\tstuck\tIt never closes.\nfirst\tweir\thealthy\tIt opens.\n"))
	require.NoError(t, err)
	require.Equal(t, []harm.Known{
		{World: "first", Guard: "weir", Promise: "stuck", Cause: "It never closes."},
		{World: "first", Guard: "weir", Promise: "healthy", Cause: "It opens."},
	}, known)

	asKnown := harm.Found{Name: "first", Verdicts: []harm.Verdict{verdict("weir", harm.Healthy, true, 2, false)}}
	require.Empty(t, harm.Compare(known, []harm.Found{asKnown}))

	mended := harm.Found{Name: "first", Verdicts: []harm.Verdict{verdict("weir", harm.Healthy, true, 0, false)}}
	require.Equal(t, []string{"first: weir no longer breaks its promise (stuck): remove it from the list"},
		harm.Compare(known, []harm.Found{mended}))

	worse := harm.Found{Name: "second", Verdicts: []harm.Verdict{verdict("weir", harm.MostlyWell, true, 0, true)}}
	differences := harm.Compare(known, []harm.Found{asKnown, worse})
	require.Len(t, differences, 2)
	require.Contains(t, differences[0], "second: weir breaks a promise that it kept: mostly well: ")
	require.Contains(t, differences[1], "second: weir breaks a promise that it kept: late: ")
}

func TestALineOfTheListHasACause(t *testing.T) {
	for _, line := range []string{"first\tweir\tstuck", "first\tweir\tstuck\t", "first weir stuck It never closes."} {
		_, err := harm.ReadList(strings.NewReader("# comment\n" + line))
		require.EqualError(t, err, "line 2 must have a world, a guard, a promise and a cause, separated by tabs")
	}
}

// few are two worlds with verdicts.
func few() []harm.Found {
	first, second := verdict("weir", harm.Healthy, true, 0, false), verdict("weir", harm.MostlyWell, false, 1, true)
	first.Regret, second.Regret = 0.25, 0.01
	second.Back, second.Limit = 50*time.Second, 40*time.Second
	return []harm.Found{
		{Name: "1/0", World: world(0), Verdicts: []harm.Verdict{first}},
		{Name: "1/1", World: world(1), Verdicts: []harm.Verdict{second}},
	}
}

func TestASetOfWorldsIsSummedUp(t *testing.T) {
	var table, worst bytes.Buffer
	require.NoError(t, harm.Summary(&table, few()))
	lines := strings.Split(table.String(), "\n")
	require.Regexp(t, `^weir +2 of 2 +1 +1 of 1 +0 of 1 +1 of 2 +1 of 2 +1 +1 +25 +0$`, lines[1])

	require.NoError(t, harm.Worst(&worst, few(), 1))
	require.Contains(t, worst.String(), "weir: 2 worlds break a promise\n  1/0: "+harm.Describe(world(0)))
	require.Contains(t, worst.String(), "breaks healthy: regret 25 %")
	require.NotContains(t, worst.String(), "1/1")
}

func TestThePageHasAPartOfItsOwn(t *testing.T) {
	scenarios, part := harm.SplitPage("# Page\n\nText.\n")
	require.Equal(t, "# Page\n\nText.\n\n", scenarios)
	require.Empty(t, part)

	page := scenarios + harm.Page(few(), 9, nil)
	require.Contains(t, page, "These are 2 worlds of seed 9")
	require.Contains(t, page, "| weir | 2 | 1 | 1 of 1 | 0 of 1 | 1 of 2 | 1 of 2 | 1 % | 1 % | 25 % |")
	require.Contains(t, page, "| weir | 25 % | ")
	again, part := harm.SplitPage(page)
	require.Equal(t, scenarios, again)
	require.Equal(t, page, again+part)
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "|") {
			continue // tables cannot be wrapped
		}
		require.LessOrEqual(t, len([]rune(line)), 110, line)
	}
}
