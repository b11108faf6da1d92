package notify_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

// teamsReceiver is a receiver that enforces the contract of a Teams workflow: a message with one
// adaptive card, at most 28 KB, and four requests in any second.
type teamsReceiver struct {
	mu     sync.Mutex
	cards  []teamsCard
	times  []time.Time
	faults []string
}

type teamsCard struct {
	Type, Version string
	Schema        string `json:"$schema"`
	Body          []struct {
		Type, Text string
		Inlines    []struct{ Type, Text, Weight, Color string }
	}
	Actions []struct{ Type, Title, URL string }
}

func (s *teamsReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, time.Now())
	if n := len(s.times); n > 4 && s.times[n-1].Sub(s.times[n-5]) < time.Second {
		w.WriteHeader(http.StatusTooManyRequests)
		s.faults = append(s.faults, "five requests in a second")
		return
	}
	body, _ := io.ReadAll(r.Body)
	var m struct {
		Type        string
		Attachments []struct {
			ContentType string
			ContentURL  *string
			Content     teamsCard
		}
	}
	if len(body) > 28_000 {
		s.faults = append(s.faults, fmt.Sprint(len(body), " bytes"))
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	err := json.Unmarshal(body, &m)
	if err != nil || m.Type != "message" || len(m.Attachments) != 1 || m.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" {
		s.faults = append(s.faults, "not a message with one card")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	card := m.Attachments[0].Content
	s.check(card)
	s.cards = append(s.cards, card)
	w.WriteHeader(http.StatusAccepted)
}

func (s *teamsReceiver) check(card teamsCard) {
	if card.Type != "AdaptiveCard" || card.Version != "1.2" || len(card.Body) == 0 || len(card.Actions) > 6 {
		s.faults = append(s.faults, "not a card of version 1.2")
	}
	for _, b := range card.Body {
		if b.Type != "RichTextBlock" || len(b.Inlines) == 0 {
			s.faults = append(s.faults, "a block of the type "+b.Type+" may be markup")
		}
		for _, run := range b.Inlines {
			if run.Type != "TextRun" {
				s.faults = append(s.faults, "a run of the type "+run.Type)
			}
		}
	}
	for _, a := range card.Actions {
		if a.Type != "Action.OpenUrl" || a.Title == "" || !strings.HasPrefix(a.URL, "http") {
			s.faults = append(s.faults, "an action of the type "+a.Type)
		}
	}
}

// texts returns the text of each block.
func (c teamsCard) texts() (texts []string) {
	for _, b := range c.Body {
		text := ""
		for _, run := range b.Inlines {
			text += run.Text
		}
		texts = append(texts, text)
	}
	return texts
}

// sentToTeams returns the receiver after the alerts were sent.
func sentToTeams(t *testing.T, alerts ...alert.Alert) *teamsReceiver {
	t.Helper()
	s := &teamsReceiver{}
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.answer.Store(http.HandlerFunc(s.ServeHTTP))
		n := notify.NewTeams(notify.Config{URL: "http://flow.example/x", Transport: server.transport})
		require.Equal(t, "teams", n.Name())
		for _, a := range alerts {
			require.NoError(t, n.Notify(t.Context(), a))
		}
		server.stop()
	})
	require.Empty(t, s.faults)
	return s
}

func TestTeamsCard(t *testing.T) {
	a := annotatedAlert()
	a.Key, a.Labels["key"] = "db-1", "db-1"
	end := resolvedAlert()
	cards := sentToTeams(t, a, end).cards
	require.Equal(t, []string{
		"[FIRING] errors (db-1)", "failure rate is <0.4> & rising", "fired 2026-01-02T03:04:05Z",
		"key: db-1", "severity: page", "description: see <here> & there",
	}, cards[0].texts())
	require.Equal(t, "attention", cards[0].Body[0].Inlines[0].Color)
	require.Equal(t, "runbook", cards[0].Actions[0].Title)
	require.Equal(t, "https://runbooks.example/x?a=1&b=2", cards[0].Actions[0].URL)
	require.Equal(t, "[RESOLVED] errors", cards[1].texts()[0])
	require.Equal(t, "fired 2026-01-02T03:04:05Z, resolved 2026-01-02T04:04:05Z", cards[1].texts()[2])
	require.Equal(t, "good", cards[1].Body[0].Inlines[0].Color)
	require.Empty(t, cards[1].Actions)
}

func TestTeamsLimitsAreKeptByEveryAlert(t *testing.T) {
	var alerts []alert.Alert
	for _, text := range []string{"x", "é", "\x00", "<", "\xff", "**[a](https://evil.example)** <at>all</at>"} {
		long := strings.Repeat(text, 4096/len(text)+1)
		a := alert.Alert{Rule: long, Key: long, Summary: long, State: alert.Firing, Labels: map[string]string{}, Annotations: map[string]string{}}
		for i := range 40 {
			a.Labels[fmt.Sprint("l", i, strings.Repeat("x", 120))] = long
			a.Annotations[fmt.Sprint("a", i)] = long
			a.Annotations[fmt.Sprint("link", i)] = "https://x.example/" + strings.Repeat("x", 1500)
		}
		alerts = append(alerts, a)
	}
	for n := 2000; n < 4096; n += 8 { // messages of every size around the limit
		a := firingAlert()
		a.Annotations = map[string]string{}
		for i := range 10 {
			a.Annotations[fmt.Sprint("a", i)] = strings.Repeat("x", n)
		}
		alerts = append(alerts, a)
	}
	s := sentToTeams(t, append(alerts, alert.Alert{})...)
	require.Len(t, s.cards, 7+262)
	texts := s.cards[0].texts()
	require.Len(t, texts, 3+50+1)
	require.Regexp(t, `^… and \d+ more$`, texts[53])
}

func TestTeamsRateIsKept(t *testing.T) {
	var many []alert.Alert
	for range 20 {
		many = append(many, firingAlert())
	}
	s := sentToTeams(t, many...)
	require.Len(t, s.cards, 20)
	require.Less(t, s.times[19].Sub(s.times[0]), 7*time.Second)
}
