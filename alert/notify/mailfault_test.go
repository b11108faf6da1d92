package notify_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func TestMailServerThatRefuses(t *testing.T) {
	for command, step := range map[string]string{
		"greeting": "the connection", "EHLO": "EHLO", "STARTTLS": "STARTTLS", "AUTH": "AUTH", "MAIL": "MAIL FROM", "RCPT": "RCPT TO",
		"DATA": "DATA", ".": "the message",
	} {
		for code, refused := range map[int]bool{421: false, 450: false, 500: true, 554: true} {
			withMailServer(t, func(t *testing.T, s *mailServer) {
				s.answers = map[string]string{command: fmt.Sprint(code, " "+secret)}
				if command == "EHLO" {
					s.answers["HELO"] = s.answers["EHLO"]
				}
				m := notify.NewMail(mailConfig(s))
				err := m.Notify(t.Context(), firingAlert())
				require.EqualError(t, err, fmt.Sprintf("alert: not delivered: SMTP status %d to %s", code, step))
				var failed *alert.DeliveryError
				require.ErrorAs(t, err, &failed)
				aboutAlert := command == "."
				require.Equal(t, refused && aboutAlert, failed.Refused)
				require.Equal(t, refused && !aboutAlert, failed.RetryAfter() == 5*time.Minute)
				require.Empty(t, s.mails)
				require.Equal(t, !failed.Refused, notify.BreakerOf(m).Totals().Failures == 1, "a refusal says that the server works")
			})
		}
	}
}

func TestMailServerThatHangsOrDropsTheConnection(t *testing.T) {
	for command, mayHaveArrived := range map[string]bool{"greeting": false, "EHLO": false, "AUTH": false, "MAIL": false, "RCPT": false, "DATA": false, ".": true} {
		withMailServer(t, func(t *testing.T, s *mailServer) {
			s.silent = command
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			err := notify.NewMail(mailConfig(s)).Notify(ctx, firingAlert())
			require.Equal(t, 3*time.Second, time.Since(began), command)
			var failed *alert.DeliveryError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "timeout", failed.Kind, command)
			synctest.Wait()
			require.Empty(t, s.mails)
		})
		if command == "greeting" {
			continue
		}
		withMailServer(t, func(t *testing.T, s *mailServer) {
			s.drop = command
			err := notify.NewMail(mailConfig(s)).Notify(t.Context(), firingAlert())
			var failed *alert.DeliveryError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, mayHaveArrived, failed.Kind == "timeout", "%s: %v", command, err)
			require.False(t, failed.Refused)
		})
	}
}

func TestMailIsDeliveredThoughTheServerSaysNoGoodbye(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		s.silent = "QUIT"
		began := time.Now()
		require.NoError(t, notify.NewMail(mailConfig(s)).Notify(t.Context(), firingAlert()))
		require.Equal(t, time.Second, time.Since(began))
		require.Len(t, s.mails, 1)
	})
}

func TestMailStopsWhenItsContextIsCanceled(t *testing.T) {
	for _, command := range []string{"greeting", "DATA", "."} {
		withMailServer(t, func(t *testing.T, s *mailServer) {
			s.silent = command
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			require.ErrorIs(t, notify.NewMail(mailConfig(s)).Notify(ctx, firingAlert()), context.Canceled)
			require.Equal(t, time.Second, time.Since(began))
		})
	}
}

// A monitor over a server that is down for ten minutes. Alerts of 100 hosts arrive in few mails.
func TestMailsOfAMonitor(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		hosts := map[string]int{}
		for i := range 100 {
			hosts[fmt.Sprint("h", i)] = i
		}
		s.answers = map[string]string{"greeting": "421 later"}
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{notify.NewMail(mailConfig(s))}, Logger: discardLogger()},
			alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(hosts), func(int) alert.Value {
				return alert.Bool(func() bool { return true })
			})})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(10 * time.Minute)
		require.Empty(t, s.received())
		s.mu.Lock()
		s.answers = nil
		s.mu.Unlock()
		time.Sleep(2 * time.Minute)
		require.LessOrEqual(t, len(s.received()), 3)
		total := 0
		for _, received := range s.received() {
			_, text := received.parsed(t)
			for host := range hosts {
				if strings.Contains(text, "[FIRING] x ("+host+")\n") {
					total++
				}
			}
		}
		require.Equal(t, 100, total)
		cancel()
		synctest.Wait()
	})
}
