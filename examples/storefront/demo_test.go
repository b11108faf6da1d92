package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// play runs a demo in a bubble. It returns what one sees at the end, and what was printed.
func play(t *testing.T, drops bool, seed uint64) (s snapshot, lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, err := newDemo(10*time.Second, drops, seed)
		require.NoError(t, err)
		defer endService(d.close)
		var out bytes.Buffer
		require.NoError(t, d.run(t.Context(), "http://127.0.0.1:12345/debug/weir/", &out))
		s = d.snapshot()
		require.Zero(t, s.without.waiting)
		require.Zero(t, s.with.waiting)
		lines = strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	})
	return s, lines
}

func TestAnOutageCostsLessWithWeir(t *testing.T) {
	for seed := range uint64(20) {
		s, _ := play(t, false, seed)
		seen := fmt.Sprintf("seed %d: %+v", seed, s)
		require.Less(t, 4*s.with.sent, s.without.sent, seen)
		require.Less(t, 4*s.with.mostWaiting, s.without.mostWaiting, seen)
		require.Less(t, 4*s.with.failed, 3*s.without.failed, seen)
		requireOneAlert(t, s, seen)
		require.True(t, s.without.isWell(), seen)
		require.Less(t, s.with.paidSince.Add(time.Second), s.without.paidSince, seen)
	}
}

// requireOneAlert requires that the breaker opened once, that there was one alert, during the
// outage, and that the shop with weir was well again within a second.
func requireOneAlert(t *testing.T, s snapshot, seen string) {
	t.Helper()
	require.Equal(t, 1, s.opened, seen)
	require.Len(t, s.alerts, 1, seen)
	require.Less(t, s.alerts[0].Sub(s.outage.from), 2*time.Second, seen)
	require.True(t, s.with.isWell(), seen)
	require.Less(t, s.with.paidSince.Sub(s.outage.to), time.Second, seen)
}

// A service that drops the calls of callers that have gone needs no time to recover. Then a gate
// costs the payments of about one timeout: those that would have waited for the end of the outage.
func TestWithAServiceThatDropsStaleCalls(t *testing.T) {
	for seed := range uint64(5) {
		s, _ := play(t, true, seed)
		seen := fmt.Sprintf("seed %d: %+v", seed, s)
		require.Less(t, 4*s.with.sent, s.without.sent, seen)
		require.Less(t, 4*s.with.mostWaiting, s.without.mostWaiting, seen)
		requireOneAlert(t, s, seen)
		require.Less(t, s.without.paidSince.Sub(s.outage.to), time.Second/2, seen)
		require.Less(t, s.with.failed, s.without.failed+demand*3/2, seen)
	}
}

var story = []string{
	"both shops are well",
	"service hangs; weir refuses",
	"breaker open, alert sent",
	"the service answers again",
	"only with weir: well again",
	"both shops are well again",
}

func TestTheDemoFitsATerminalAndTellsTheStory(t *testing.T) {
	s, lines := play(t, false, 1)
	require.LessOrEqual(t, len(lines), 24)
	var told []string
	for i, line := range lines {
		require.LessOrEqual(t, len(line), 80, line)
		if i >= 5 && i < 14 {
			told = append(told, line[52:])
		}
	}
	require.Equal(t, story, slices.Compact(told))

	var figures map[string]int
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &figures))
	require.Equal(t, map[string]int{
		"failed": s.without.failed, "failed_weir": s.with.failed, "sent": s.without.sent, "sent_weir": s.with.sent,
		"opened": 1, "alerts": 1,
	}, figures)
}

func TestWordsOfARow(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	well := figures{paidInARow: wellRow}
	for want, s := range map[string]snapshot{
		story[0]:                   {now: at(1)},
		story[1]:                   {now: at(2)},
		"the breaker is open":      {now: at(3), opened: 1},
		story[2]:                   {now: at(3), opened: 1, alerts: []time.Time{at(2)}},
		story[3]:                   {now: at(4)},
		story[4]:                   {now: at(5), with: well},
		"without weir: well again": {now: at(5), without: well},
		story[5]:                   {now: at(6), without: well, with: well},
	} {
		s.outage = outage{from: at(2), to: at(4)}
		require.Equal(t, want, words(s))
	}
}

func TestADemoThatEndsEarlySaysWhatHasNotHappened(t *testing.T) {
	start := time.Now()
	text := end(snapshot{start: start, now: start, outage: outage{start.Add(time.Second), start.Add(time.Minute)}})
	require.Regexp(t, `well again.* not yet +not yet\n`, text)
	require.Regexp(t, `on call is alerted.* never +not yet\n`, text)
	require.Equal(t, "2.0 s", wellAgain(figures{paidInARow: wellRow, paidSince: start.Add(62 * time.Second)},
		outage{start, start.Add(time.Minute)}))
}

var notWords = regexp.MustCompile(`[^A-Za-z"*]+`)

// wordsOf returns the words of the lines without their figures. A line like the one before it, such
// as most rows, is left out.
func wordsOf(lines []string) []string {
	var words []string
	for _, line := range lines {
		words = append(words, strings.TrimSpace(notWords.ReplaceAllString(line, " ")))
	}
	return slices.Compact(words)
}

// TestTheRecordingIsOfThisDemo compares the picture of the README with the lines that are printed
// now. After a change, make demo-recording makes the picture again.
func TestTheRecordingIsOfThisDemo(t *testing.T) {
	picture, err := os.ReadFile("../../docs/demo.svg")
	require.NoError(t, err)
	require.Less(t, len(picture), 60_000)
	var recorded []string
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		element, is := token.(xml.StartElement)
		if is && element.Name.Local == "text" {
			var line string
			require.NoError(t, decoder.DecodeElement(&line, &element))
			recorded = append(recorded, line)
		}
	}
	_, lines := play(t, false, 1)
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	require.Equal(t, append([]string{"make demo"}, wordsOf(lines)...), wordsOf(recorded))
}
