package notify_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func mailConfig(s *mailServer) notify.MailConfig {
	return notify.MailConfig{
		Server: mailHost + ":587", User: "weir", Password: secret, From: "weir <weir@sender.example>", To: []string{"on-call@team.example"},
		TLS: &tls.Config{RootCAs: s.roots}, Dial: s.dial,
	}
}

// withMailServer runs a test with a server.
func withMailServer(t *testing.T, test func(*testing.T, *mailServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newMailServer(t)
		test(t, s)
		synctest.Wait()
		require.Empty(t, s.faults)
	})
}

func TestMailIsSentOverTLS(t *testing.T) {
	for server, implicit := range map[string]bool{mailHost + ":587": false, mailHost + ":25": false, mailHost + ":465": true} {
		withMailServer(t, func(t *testing.T, s *mailServer) {
			s.implicit = implicit
			c := mailConfig(s)
			c.Server = server
			m := notify.NewMail(c)
			require.Equal(t, "mail", m.Name())
			require.Equal(t, 4*time.Hour, repeatOf(m))
			a := annotatedAlert()
			a.Key, a.Labels["key"] = "db-1", "db-1"
			require.NoError(t, m.Notify(t.Context(), a))
			require.Equal(t, []string{"PLAIN weir " + secret}, s.logins)
			require.Equal(t, "FROM:<weir@sender.example> BODY=8BITMIME", s.mails[0].from)
			require.Equal(t, []string{"TO:<on-call@team.example>"}, s.mails[0].to)
			header, text := s.mails[0].parsed(t)
			require.Equal(t, "[FIRING] errors (db-1)", header.Get("Subject"))
			require.Equal(t, `"weir" <weir@sender.example>`, header.Get("From"))
			require.Equal(t, "<on-call@team.example>", header.Get("To"))
			require.Equal(t, "auto-generated", header.Get("Auto-Submitted"))
			date, err := header.Date()
			require.NoError(t, err)
			require.Equal(t, time.Now().Unix(), date.Unix())
			require.Regexp(t, `^<\w{26}@sender\.example>$`, header.Get("Message-ID"))
			require.Equal(t, "[FIRING] errors (db-1)\n\nfailure rate is <0.4> & rising\n\nvalue: 0.4\nfired 2026-01-02T03:04:05Z\n"+
				"description: see <here> & there\nrunbook: https://runbooks.example/x?a=1&b=2\nkey: db-1\nseverity: page\n", text)
		})
	}
}

func TestMailsAboutOneAlertAreAThread(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		m := notify.NewMail(mailConfig(s))
		for range 2 {
			require.NoError(t, m.Notify(t.Context(), firingAlert()))
		}
		require.NoError(t, m.Notify(t.Context(), resolvedAlert()))
		again := firingAlert()
		again.StartsAt = again.StartsAt.Add(time.Hour)
		require.NoError(t, m.Notify(t.Context(), again))
		ids, threads := map[string]bool{}, map[string]int{}
		for _, received := range s.mails {
			header, _ := received.parsed(t)
			ids[header.Get("Message-ID")] = true
			threads[header.Get("References")]++
		}
		require.Len(t, ids, 4)
		require.ElementsMatch(t, []int{3, 1}, slices.Collect(maps.Values(threads)))
		header, text := s.mails[2].parsed(t)
		require.Equal(t, "[RESOLVED] errors", header.Get("Subject"))
		require.Contains(t, text, "resolved 2026-01-02T04:04:05Z")
	})
}

func TestMailAboutSeveralAlerts(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		var alerts []alert.Alert
		for i := range 64 {
			a := firingAlert()
			a.Rule = fmt.Sprint("rule ", i%2)
			a.Summary = fmt.Sprint("summary ", i, strings.Repeat("é", 4000))
			if i >= 60 {
				a.State, a.EndsAt = alert.Resolved, a.StartsAt
			}
			alerts = append(alerts, a)
		}
		m := notify.NewMail(mailConfig(s))
		require.NoError(t, notifyAll(t.Context(), m, alerts))
		require.NoError(t, notifyAll(t.Context(), m, nil))
		require.Len(t, s.mails, 1)
		header, text := s.mails[0].parsed(t)
		require.Equal(t, "[60 FIRING, 4 RESOLVED] rule 0, rule 1", header.Get("Subject"))
		require.Empty(t, header.Get("References"))
		for i := range 64 {
			require.Contains(t, text, fmt.Sprint("summary ", i, "é"), "each alert is there")
		}
	})
}

// Names, keys and summaries may come from strangers.
func TestMailHasNoHeadersFromAlerts(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		m := notify.NewMail(mailConfig(s))
		for _, evil := range []string{
			"x\r\nBcc: evil@evil.example", "x\nBcc: evil@evil.example", "x\rBcc: evil@evil.example", "x\r\n\r\nbody", "\r\n.\r\nMAIL FROM:<x>",
			"=?utf-8?q?Bcc=3A?=", "x\x00y", "\xff\xfe", "é\r\nBcc: evil@evil.example", "x\u2028Bcc: y", "x\u0085y",
			strings.Repeat("x", 5000), strings.Repeat("😀", 3000), strings.Repeat("é x", 2000), "", "\n.\n..\n",
		} {
			before := len(s.mails)
			a := alert.Alert{ID: "0123456789abcdef", Rule: evil, Key: evil, Summary: evil, State: alert.Firing, Labels: map[string]string{"key": evil}}
			require.NoError(t, m.Notify(t.Context(), a), "%.50q", evil)
			require.Len(t, s.mails, before+1)
			header, text := s.mails[before].parsed(t)
			names := slices.Sorted(maps.Keys(header))
			require.Equal(t, []string{
				"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "References", "Subject", "To",
			}, names, "%.50q", evil)
			require.Len(t, s.mails[before].to, 1)
			subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
			require.NoError(t, err)
			require.NotContains(t, subject, "\n")
			if strings.HasPrefix(evil, "=?") {
				require.Equal(t, "[FIRING] = ?utf-8?q?Bcc=3A?= (= ?utf-8?q?Bcc=3A?=)", subject, "not decoded")
			}
			require.True(t, strings.HasPrefix(subject, "[FIRING]"))
			require.Contains(t, text, "value: 0")
		}
	})
}

func TestMailRecipients(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		c := mailConfig(s)
		c.To = nil
		for i := range 100 {
			c.To = append(c.To, fmt.Sprintf("Ünal %d <u%d@team.example>", i, i))
		}
		s.answers = map[string]string{"RCPT TO:<u1@team.example>": "550 no such user", "RCPT TO:<u2@team.example>": "551 not here"}
		require.NoError(t, notify.NewMail(c).Notify(t.Context(), firingAlert()))
		require.Len(t, s.mails[0].to, 98, "the others get it")
		header, _ := s.mails[0].parsed(t)
		list, err := header.AddressList("To")
		require.NoError(t, err)
		require.Equal(t, mail.Address{Name: "Ünal 99", Address: "u99@team.example"}, *list[99])
	})
}

func TestMailLogins(t *testing.T) {
	for auth, want := range map[string]string{"LOGIN": "LOGIN weir " + secret, "login plain": "PLAIN weir " + secret, "XOAUTH2": "", "": ""} {
		withMailServer(t, func(t *testing.T, s *mailServer) {
			s.auth = auth
			err := notify.NewMail(mailConfig(s)).Notify(t.Context(), firingAlert())
			if want == "" {
				require.EqualError(t, err, "alert: not delivered: the server offers neither AUTH PLAIN nor AUTH LOGIN")
				require.Empty(t, s.mails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{want}, s.logins)
		})
	}
	withMailServer(t, func(t *testing.T, s *mailServer) {
		c := mailConfig(s)
		c.User, c.Password, c.NoTLS = "", "", true
		s.noStartTLS = true
		require.NoError(t, notify.NewMail(c).Notify(t.Context(), firingAlert()))
		require.Empty(t, s.logins)
		require.Len(t, s.mails, 1)
	})
}

func TestMailIsNotSentWithoutTrustedTLS(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		s.noStartTLS = true
		err := notify.NewMail(mailConfig(s)).Notify(t.Context(), firingAlert())
		require.EqualError(t, err, "alert: not delivered: the server does not offer STARTTLS")
	})
	for _, change := range []func(*notify.MailConfig){
		func(c *notify.MailConfig) { c.TLS = nil },
		func(c *notify.MailConfig) { c.Server = "other.example:587" },
	} {
		withMailServer(t, func(t *testing.T, s *mailServer) {
			c := mailConfig(s)
			change(&c)
			err := notify.NewMail(c).Notify(t.Context(), firingAlert())
			require.EqualError(t, err, "alert: not delivered: no secure connection")
			require.Empty(t, s.mails)
			require.Empty(t, s.logins)
		})
	}
}

func TestMailConfigIsChecked(t *testing.T) {
	valid := notify.MailConfig{Server: "x.example:25", From: "a@x.example", To: []string{"b@x.example"}}
	require.NoError(t, valid.Validate())
	for want, change := range map[string]func(*notify.MailConfig){
		"Server (not shown) must be a host and a port":      func(c *notify.MailConfig) { c.Server = secret },
		"From (not shown) must be an e-mail address":        func(c *notify.MailConfig) { c.From = secret },
		"To (not shown) must be 1 to 100 e-mail addresses":  func(c *notify.MailConfig) { c.To = nil },
		"To (not shown) must be 1 to 100 e-mail":            func(c *notify.MailConfig) { c.To = []string{"b@x.example\r\nBcc: c@x.example"} },
		"To (not shown) must be 1 to 100":                   func(c *notify.MailConfig) { c.To = slices.Repeat([]string{"b@x.example"}, 101) },
		"Password is set, must not be without User":         func(c *notify.MailConfig) { c.Password = secret },
		"NoTLS is set, must not be with User: the password": func(c *notify.MailConfig) { c.User, c.NoTLS = secret, true },
		"Repeat is -2ns, must be at least 0, or Off":        func(c *notify.MailConfig) { c.Repeat = -2 },
		"Breaker: ": func(c *notify.MailConfig) { c.Breaker.MinCalls = -5 },
	} {
		c := valid
		change(&c)
		err := c.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), secret)
		require.PanicsWithError(t, err.Error(), func() { notify.NewMail(c) })
	}
}

func TestMailSecretsAppearNowhere(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		c := mailConfig(s)
		c.Name, c.User, c.Password = "pager", "weir", secret
		own := c // a notifier shows nothing of its config but the name
		own.User, own.To = secret, []string{secret + "@x.example"}
		s.answers = map[string]string{"AUTH": "535 no user " + secret}
		m := notify.NewMail(own)
		var log bytes.Buffer
		err := m.Notify(t.Context(), firingAlert())
		require.EqualError(t, err, "alert: not delivered: SMTP status 535 to AUTH")
		for _, value := range []any{c, &c, m, struct{ C notify.MailConfig }{c}, struct{ m alert.Notifier }{m}, []any{m, c}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				fmt.Fprintf(&log, verb, value)
			}
			marshaled, _ := json.Marshal(value)
			log.Write(marshaled)
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
			slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
		}
		require.NotContains(t, log.String(), secret)
		require.NotContains(t, log.String(), fmt.Sprintf("%x", secret))
		require.Equal(t, `notifier "pager"`, fmt.Sprint(m))
	})
}

func TestMailDialsTheServer(t *testing.T) {
	c := notify.MailConfig{Server: "mail.example:25", From: "a@x.example", To: []string{"b@x.example"}}
	c.Dial = func(_ context.Context, network, address string) (net.Conn, error) {
		require.Equal(t, "tcp mail.example:25", network+" "+address)
		return nil, &net.DNSError{Err: "no such host", Name: secret}
	}
	require.EqualError(t, notify.NewMail(c).Notify(t.Context(), firingAlert()), "alert: not delivered: unknown host name")
}
