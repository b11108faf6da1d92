package notify_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func (s *mailServer) setAnswers(answers map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

// A server refuses one of two recipients for ten minutes, as greylisting does.
func TestARecipientThatIsRefusedForNowGetsTheMailLater(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		c := mailConfig(s)
		c.To = []string{"a@team.example", "b@team.example"}
		s.answers = map[string]string{"RCPT TO:<b@team.example>": "450 " + secret}
		mail := notify.NewMail(c)
		var fires atomic.Bool
		fires.Store(true)
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{mail}, Logger: discardLogger()},
			alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(fires.Load)},
			alert.Rule{Name: "y", When: alert.Above(0), Value: alert.Bool(fires.Load)})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(9 * time.Minute)
		require.Len(t, s.received(), 1, "both alerts in one mail")
		require.Equal(t, []string{"TO:<a@team.example>"}, s.received()[0].to)
		require.Zero(t, notify.BreakerOf(mail).Totals().Failures, "the server works")
		s.setAnswers(nil)
		time.Sleep(11 * time.Minute)
		got := s.received()
		require.Len(t, got, 3)
		for _, one := range got[1:] {
			require.Equal(t, []string{"TO:<b@team.example>"}, one.to, "only who lacks it")
		}
		fires.Store(false)
		time.Sleep(time.Minute)
		require.Len(t, s.received()[3].to, 2, "the end goes to both")
		cancel()
		synctest.Wait()
	})
}

func TestARecipientIsTriedAgainForAnHour(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		c := mailConfig(s)
		c.To = []string{"a@team.example", "b@team.example"}
		s.answers = map[string]string{"RCPT TO:<b@team.example>": "452 full"}
		m := notify.NewMail(c)
		for range 12 {
			err := m.Notify(t.Context(), firingAlert())
			require.EqualError(t, err, "alert: not delivered: SMTP status 452 to RCPT TO for 1 of 2 recipients")
			var failed *alert.DeliveryError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Refused)
			conns := s.conns
			require.Error(t, m.Notify(t.Context(), firingAlert()), "at once")
			require.Equal(t, conns, s.conns, "without a connection")
			time.Sleep(5 * time.Minute)
		}
		require.NoError(t, m.Notify(t.Context(), firingAlert()))
		require.Len(t, s.received(), 1)
		s.setAnswers(map[string]string{"RCPT TO:<b@team.example>": "550 gone"})
		require.NoError(t, m.Notify(t.Context(), resolvedAlert()))
		require.Equal(t, []string{"TO:<a@team.example>"}, s.received()[1].to)
	})
}

// A sink is a package variable that is used with the real clock, and then in one bubble after the
// other. In each clock, the recipient is tried again each minute, and for an hour.
func TestADeferralStartsAgainWithEachClock(t *testing.T) {
	s := newMailServer(t)
	c := mailConfig(s)
	c.To = []string{"a@team.example", "b@team.example"}
	s.answers = map[string]string{"RCPT TO:<b@team.example>": "452 full"}
	m := notify.NewMail(c)
	attempts := func(t *testing.T) int {
		conns := s.conns
		require.Error(t, m.Notify(t.Context(), firingAlert()))
		return s.conns - conns
	}
	require.Equal(t, 1, attempts(t))
	require.Zero(t, attempts(t))
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for range 60 {
				require.Equal(t, 1, attempts(t))
				require.Zero(t, attempts(t), "within a minute")
				time.Sleep(time.Minute)
			}
			require.NoError(t, m.Notify(t.Context(), firingAlert()), "after an hour")
			require.Equal(t, 1, attempts(t), "a new deferral")
			synctest.Wait()
		})
	}
	require.Equal(t, 1, attempts(t), "with the real clock")
}
