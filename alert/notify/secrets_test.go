package notify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
)

// failingTransport is a transport whose errors name the address.
type failingTransport func() error

func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f() }

func TestSecretsAppearInNoErrorOrLog(t *testing.T) {
	const address = "https://user:" + secret + "@hooks." + secret + ".example/services/" + secret
	host := secret + ".example"
	dial := func(err error) func() error {
		return func() error { return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.UnixAddr{Name: host}, Err: err} }
	}
	for want, fault := range map[string]func() error{
		"connection refused": dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"unknown host name":  dial(&net.DNSError{Err: "no such host", Name: host}),
		"no answer in time":  dial(&net.DNSError{Err: "timeout", Name: host, IsTimeout: true}),
		"no connection":      func() error { return errors.New("proxy " + host + " is unavailable") },
		"connection closed":  func() error { return &url.Error{Op: "Post", URL: address, Err: io.ErrUnexpectedEOF} },
	} {
		synctest.Test(t, func(t *testing.T) {
			var log lockedBuffer
			config := notify.Config{
				Name: "pager", URL: address, Header: map[string]notify.Secret{"Authorization": secret}, Transport: failingTransport(fault),
				Breaker: breaker.Config{MinCalls: 1000},
			}
			signed := notify.NewSignedWebhook(config, "whsec_"+"VDBQU0VDUkVUVDBQU0VDUkVUVDBQU0VDUkVU")
			for _, n := range []alert.Notifier{
				signed, notify.NewSlack(config), notify.NewAlertmanager(config), notify.NewTeams(config),
				notify.NewPagerDuty(config, notify.Secret(strings.Repeat(secret, 3)+"xxxxx")),
				notify.NewTemplateWebhook(config, `{"key": "`+secret+`", "text": {{.Summary}}}`),
			} {
				w := newSwitchedMonitor(t, n, slog.New(slog.NewJSONHandler(&log, nil)))
				w.set(true)
				w.stop()
				err := n.Notify(t.Context(), firingAlert())
				require.ErrorContains(t, err, want)
				marshalled, _ := json.Marshal(n)
				fmt.Fprintf(&log, "%v %+v %#v %s %s %v", n, n, n, marshalled, err, errors.Unwrap(err))
				slog.New(slog.NewTextHandler(&log, nil)).Info("sink", "sink", n, "config", config)
			}
			fmt.Fprintf(&log, "%v %+v %#v", config, config, config)
			require.Contains(t, log.String(), "pager")
			require.NotContains(t, log.String(), secret)
			require.NotContains(t, log.String(), "VDBQU0VDUkVU")
		})
	}
}

// This test uses real connections and the default transport, unlike the one above.
func TestSecretsAppearInNoErrorOfARealConnection(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	silent := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	plain, secure, gone := httptest.NewServer(handler), httptest.NewUnstartedServer(handler), httptest.NewServer(handler)
	defer plain.Close()
	secure.Config.ErrorLog = silent
	secure.StartTLS()
	defer secure.Close()
	gone.Close()
	for want, address := range map[string]string{
		"connection closed": plain.URL, "no secure connection": secure.URL, "connection refused": gone.URL,
	} {
		err := notify.NewWebhook(notify.Config{URL: notify.Secret(address + "/" + secret)}).Notify(t.Context(), firingAlert())
		require.EqualError(t, err, "alert: not delivered: "+want)
	}
}

// The values are printed with every verb, alone and nested in other values.
func TestSecretsAppearInNoPrintedForm(t *testing.T) {
	config := notify.Config{Name: "pager", URL: "https://a.example/" + secret, Header: map[string]notify.Secret{"Authorization": secret}}
	const key = "VDBQU0VDUkVUVDBQU0VDUkVUVDBQU0VDUkVU"
	hook, am, slack := notify.NewSignedWebhook(config, "whsec_"+key), notify.NewAlertmanager(config), notify.NewSlack(config)
	pager := notify.NewPagerDuty(config, notify.Secret(strings.Repeat(secret, 3)+"xxxxx"))
	templated := notify.NewTemplateWebhook(config, `{"key": "`+secret+`", "text": {{.Summary}}}`)
	type inner struct{ C notify.Config }
	for _, value := range []any{
		config, &config,
		[]notify.Config{config},
		map[string]notify.Config{"a": config},
		inner{config},
		&inner{config},
		[]inner{{config}},
		config.URL, &config.URL, config.Header,
		struct{ S []notify.Secret }{[]notify.Secret{secret, key}},
		hook, am, slack, pager, templated,
		struct{ N alert.Notifier }{hook},
		struct{ n alert.Notifier }{pager},
		struct{ s any }{slack},
		[]any{struct{ n alert.Notifier }{templated}},
	} {
		hidden := []string{secret, key, "T0PSECRETT0PSECRETT0PSECRET", fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), strings.Trim(fmt.Sprint([]byte(secret)), "[]")}
		for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d", "t", "g", "c", "U", "z"} {
			text := fmt.Sprintf("%"+verb, value)
			for _, h := range hidden {
				require.NotContains(t, text, h, "%%%s of a %T", verb, value)
			}
		}
		// It fails for a Config, because a breaker.Config has functions.
		written, _ := json.Marshal(value)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
		for _, h := range hidden {
			require.NotContains(t, string(written), h)
			require.NotContains(t, log.String(), h)
		}
	}
	require.Equal(t, `notifier "pager"`, fmt.Sprint(hook))
}

func TestASecretIsMaskedWhereItIsShown(t *testing.T) {
	type account struct{ Password notify.Secret }
	var a account
	require.NoError(t, json.Unmarshal([]byte(`{"Password": "`+secret+`"}`), &a))
	require.Equal(t, secret, string(a.Password))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%z"} {
		require.Equal(t, "…", fmt.Sprintf(verb, a.Password), verb)
	}
	written, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, `{"Password":"…"}`, string(written))
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "password", a.Password)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "password", a.Password)
	require.Contains(t, log.String(), "password=…\n")
	require.Contains(t, log.String(), `"password":"…"}`)
	require.Equal(t, "…", slog.AnyValue(a.Password).String())
}

// lockedBuffer is a buffer that is safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
