package notify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func TestWebhookMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		hook := notify.NewWebhook(notify.Config{
			Name: "pager", URL: "http://pager.example/hook?token=" + secret, Transport: server.transport,
			Header: map[string]notify.Secret{"authorization": "Bearer " + secret},
		})
		require.NoError(t, hook.Notify(t.Context(), firingAlert()))
		require.NoError(t, hook.Notify(t.Context(), resolvedAlert()))
		first, second := server.requests()[0], server.requests()[1]
		require.Equal(t, "/hook?token="+secret, first.path)
		require.Equal(t, "Bearer "+secret, first.header.Get("Authorization"))
		require.Equal(t, "application/json", first.header.Get("Content-Type"))
		require.Empty(t, first.header.Get("Webhook-Signature"))
		require.JSONEq(t, `{
			"version": "4", "groupKey": "{}:{alertname=\"errors\", severity=\"page\"}", "truncatedAlerts": 0, "receiver": "pager", "status": "firing",
			"groupLabels": {"alertname": "errors", "severity": "page"}, "commonLabels": {"alertname": "errors", "severity": "page"},
			"commonAnnotations": {"summary": "failure rate is <0.4> & rising", "value": "0.4"}, "externalURL": "",
			"alerts": [{
				"status": "firing", "labels": {"alertname": "errors", "severity": "page"},
				"annotations": {"summary": "failure rate is <0.4> & rising", "value": "0.4"},
				"startsAt": "2026-01-02T03:04:05Z", "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "", "fingerprint": "0123456789abcdef"
			}]}`, string(first.body))
		require.Contains(t, string(second.body), `"status":"resolved"`)
		require.Contains(t, string(second.body), `"endsAt":"2026-01-02T04:04:05Z"`)
		server.stop()
	})
}

// The expected signature is computed as in the specification:
// base64(HMAC-SHA256(key, id + "." + timestamp + "." + body)).
func TestSignedWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		raw := []byte("0123456789abcdef0123456789abcdef")
		hook := notify.NewSignedWebhook(notify.Config{URL: "http://a.example", Transport: server.transport},
			notify.Secret("whsec_"+base64.StdEncoding.EncodeToString(raw)))
		require.NoError(t, hook.Notify(t.Context(), firingAlert()))
		time.Sleep(time.Minute)
		require.NoError(t, hook.Notify(t.Context(), firingAlert()))
		require.NoError(t, hook.Notify(t.Context(), resolvedAlert()))
		got := server.requests()
		for _, r := range got {
			mac := hmac.New(sha256.New, raw)
			mac.Write([]byte(r.header.Get("webhook-id") + "." + r.header.Get("webhook-timestamp") + "." + string(r.body)))
			require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), r.header.Get("webhook-signature"))
		}
		require.Equal(t, got[0].header.Get("webhook-id"), got[1].header.Get("webhook-id"), "the same state")
		require.NotEqual(t, got[0].header.Get("webhook-timestamp"), got[1].header.Get("webhook-timestamp"))
		require.NotEqual(t, got[0].header.Get("webhook-id"), got[2].header.Get("webhook-id"), "another state")
		server.stop()
	})
}

// The key, id and signature are those in the tests of the specification's libraries.
func TestSignatureOfTheSpecificationsExample(t *testing.T) {
	at := time.Unix(1614265330, 0)
	header, err := notify.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`))
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", header.Get("webhook-signature"))
}

func TestInvalidKeysPanicWithoutShowingTheKey(t *testing.T) {
	for _, key := range []string{"", secret, "whsec_" + secret, "whsec_!" + secret, "whsec_c2hvcnQ="} {
		require.PanicsWithError(t, `notify: the key (not shown) must be "whsec_" followed by 24 to 64 bytes in base64`, func() {
			notify.NewSignedWebhook(notify.Config{URL: "http://a.example"}, notify.Secret(key))
		})
	}
}

func TestStatusCodes(t *testing.T) {
	for _, test := range []struct {
		status int
		header []string
		want   alert.DeliveryError
		text   string
	}{
		{status: 500, want: alert.DeliveryError{Kind: "http_5xx"}, text: "status 500 Internal Server Error"},
		{status: 503, header: []string{"Retry-After", "7"}, want: alert.DeliveryError{Kind: "http_5xx", Pause: 7 * time.Second}, text: "status 503 Service Unavailable"},
		{status: 429, header: []string{"Retry-After", "120"}, want: alert.DeliveryError{Kind: "http_4xx", Pause: 2 * time.Minute}, text: "status 429 Too Many Requests"},
		{
			status: 429, want: alert.DeliveryError{Kind: "http_4xx", Pause: 90 * time.Second}, text: "status 429 Too Many Requests",
			header: []string{"Retry-After", "Wed, 21 Oct 2015 07:29:30 GMT", "Date", "Wed, 21 Oct 2015 07:28:00 GMT"},
		},
		{status: 429, header: []string{"Retry-After", "soon"}, want: alert.DeliveryError{Kind: "http_4xx"}, text: "status 429 Too Many Requests"},
		{status: 429, header: []string{"Retry-After", "-5"}, want: alert.DeliveryError{Kind: "http_4xx"}, text: "status 429 Too Many Requests"},
		{status: 429, header: []string{"Retry-After", "Wed, 21 Oct 1999 07:28:00 GMT"}, want: alert.DeliveryError{Kind: "http_4xx"}, text: "status 429 Too Many Requests"},
		{status: 408, want: alert.DeliveryError{Kind: "http_4xx"}, text: "status 408 Request Timeout"},
		{status: 400, header: []string{"Retry-After", "7"}, want: alert.DeliveryError{Kind: "http_4xx", Refused: true}, text: "status 400 Bad Request"},
		{status: 404, want: alert.DeliveryError{Kind: "http_4xx", Refused: true}, text: "status 404 Not Found"},
		{status: 307, header: []string{"Location", "http://elsewhere.example/" + secret}, want: alert.DeliveryError{Refused: true}, text: "status 307 Temporary Redirect"},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			server.replies(test.status, test.header...)
			err := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport}).Notify(t.Context(), firingAlert())
			var got *alert.DeliveryError
			require.ErrorAs(t, err, &got)
			require.EqualError(t, got.Err, test.text)
			got.Err = nil
			require.Equal(t, &test.want, got, "status %d, %v", test.status, test.header)
			require.Len(t, server.requests(), 1)
			server.stop()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.replies(http.StatusAccepted)
		require.NoError(t, notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport}).Notify(t.Context(), firingAlert()))
		server.stop()
	})
}
