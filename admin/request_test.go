package admin_test

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/limiter"
)

func withHeader(key, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(key, value) }
}

func TestNewFailsWithoutAuthorize(t *testing.T) {
	_, err := admin.New(admin.Config{})
	require.ErrorContains(t, err, "Authorize is nil")
	_, err = admin.New(admin.Config{Authorize: authorize, TrustedOrigins: []string{"nonsense"}})
	require.ErrorContains(t, err, "TrustedOrigins")
}

func TestAuthorize(t *testing.T) {
	g := weir.New("g", weir.Config{})
	k := newHandlerTest(t, g)
	k.requireRefused(401, "no valid credentials", "/force?name=g", `{"state":"open"}`, withHeader("Authorization", ""))
	k.requireRefused(403, "guests only read", "/force?name=g", `{"state":"open"}`, withHeader("Authorization", "Bearer guest"))
	require.Equal(t, 200, k.send("GET", "/objects", "", withHeader("Authorization", "Bearer guest")).Status)
	for _, path := range []string{"/objects", "/object?name=g", "/members?name=g"} {
		require.Equal(t, 401, k.send("GET", path, "", withHeader("Authorization", "")).Status, path)
	}
	require.Contains(t, k.logs.text(), "weir.admin.refused")
	require.Equal(t, "closed", string(g.Breaker().State()))
}

func TestAuthorizeGetsTheAction(t *testing.T) {
	var got admin.Action
	h, err := admin.New(admin.Config{Authorize: func(_ *http.Request, a admin.Action) (string, error) {
		got = a
		return "bob", errors.New("never")
	}}, weir.New("g", weir.Config{}))
	require.NoError(t, err)
	k := &handlerTest{T: t, handler: h}
	k.requireRefused(403, "never", "/drain?name=g&key=k&kind=gate", "not JSON")
	require.Equal(t, admin.Action{Verb: "drain", Kind: "gate", Name: "g", Key: "k"}, got)
}

func TestPanicOfAuthorizeRefuses(t *testing.T) {
	g := weir.New("g", weir.Config{})
	h, err := admin.New(admin.Config{Authorize: func(*http.Request, admin.Action) (string, error) { panic("secret") }}, g)
	require.NoError(t, err)
	k := &handlerTest{T: t, handler: h}
	a := k.send("POST", "/force?name=g", `{"state":"open"}`)
	require.Equal(t, 500, a.Status)
	require.NotContains(t, a.Text, "secret")
	require.Equal(t, "closed", string(g.Breaker().State()))
}

func TestRequestsFromOtherOriginsAreRefused(t *testing.T) {
	g := weir.New("g", weir.Config{})
	k := newHandlerTest(t, g)
	body := `{"state":"open"}`
	k.requireRefused(403, "cross-origin", "/force?name=g", body, withHeader("Sec-Fetch-Site", "cross-site"))
	k.requireRefused(403, "cross-origin", "/force?name=g", body, withHeader("Sec-Fetch-Site", "same-site"))
	k.requireRefused(403, "cross-origin", "/force?name=g", body, withHeader("Origin", "https://evil.example"))
	k.requireRefused(403, "cross-origin", "/force?name=g", body, withHeader("Origin", "null"))
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp"} {
		k.requireRefused(415, "must be application/json", "/force?name=g", body, withHeader("Content-Type", kind))
		k.requireRefused(415, "must be application/json", "/release?name=g", "", withHeader("Content-Type", kind))
	}
	require.Equal(t, "closed", string(g.Breaker().State()))
	require.Equal(t, 200, k.send("POST", "/force?name=g", body, withHeader("Sec-Fetch-Site", "same-origin")).Status)
	require.Equal(t, 200, k.send("POST", "/release?name=g", "", withHeader("Content-Type", "application/json; charset=utf-8")).Status)
}

func TestInvalidRequests(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(5)})
	k := newHandlerTest(t, g)
	user := 0
	fails := func(status int, text, target, body string) {
		t.Helper()
		user++ // each user has a separate rate
		k.requireRefused(status, text, target, body, withHeader("Authorization", "Bearer "+strconv.Itoa(user)))
	}
	fails(400, "no name", "/force", `{"state":"open"}`)
	fails(404, `no object "x"`, "/force?name=x", `{"state":"open"}`)
	fails(404, `no breaker "g"`, "/force?name=g&kind=breaker", `{"state":"open"}`)
	fails(400, "is not a group", "/force?name=g&key=1", `{"state":"open"}`)
	fails(400, `no parameter "nam"`, "/force?name=g&nam=1", `{"state":"open"}`)
	fails(400, `"name" twice`, "/force?name=g&name=h", `{"state":"open"}`)
	fails(400, `no "state"`, "/force?name=g", ``)
	fails(400, "must be one of open", "/force?name=g", `{"state":"half_open"}`)
	fails(400, "unknown field", "/force?name=g", `{"state":"open","STATE":"closed"}`)
	fails(400, `"state" twice`, "/force?name=g", `{"state":"open","state":"closed"}`)
	fails(400, "not valid JSON", "/force?name=g", `{"state":"open"} {}`)
	fails(400, "JSON object", "/force?name=g", `["open"]`)
	fails(400, "not valid JSON", "/force?name=g", `{"state":NaN}`)
	fails(400, "must be a string", "/force?name=g", `{"state":null}`)
	fails(400, "must be a string", "/force?name=g", `{"state":7}`)
	for _, d := range []string{"0s", "-1m", "721h", "x", "", "NaN", "10"} {
		fails(400, "a duration above 0", "/force?name=g", `{"state":"open","for":"`+d+`"}`)
	}
	for _, rate := range []string{"NaN/s", "-1/s", "0/s", "Inf/s", "1/-1s", "", "1e300/ns"} {
		fails(400, "Rate is", "/limits?name=g", `{"rate":"`+rate+`"}`)
	}
	for _, n := range []string{"-1", "0", "1.5", `"7"`, "null", "1e30", "99999999999999999999"} {
		fails(400, "whole number", "/limits?name=g", `{"burst":`+n+`}`)
	}
	if math.MaxInt > math.MaxInt32 {
		fails(400, "Burst", "/limits?name=g", `{"burst":9000000000000000000}`)
	}
	fails(400, "reason", "/force?name=g", `{"state":"open","reason":"`+strings.Repeat("x", 501)+`"}`)
	fails(413, "more than 16384 bytes", "/force?name=g", `{"reason":"`+strings.Repeat("x", 17_000)+`"}`)
	fails(404, "no path", "/../../etc/passwd", `{}`)
	fails(404, "no path", "/force/g", `{}`)
	fails(405, "must be GET", "/objects", `{}`)
	a := k.send("DELETE", "/force?name=g", "")
	require.Equal(t, 405, a.Status)
	require.Equal(t, "POST", a.Header.Get("Allow"))
	require.Equal(t, "5/s", k.send("GET", "/object?name=g", "").Rate)
	require.Empty(t, k.send("GET", "/object?name=g", "").History)
	require.Equal(t, "closed", string(g.Breaker().State()))
}

func TestRatesOfUsersAreSeparate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newHandlerTest(t, weir.New("g", weir.Config{}))
		for range 40 {
			require.Equal(t, 200, k.send("GET", "/objects", "").Status)
		}
		a := k.send("GET", "/objects", "")
		require.Equal(t, 429, a.Status)
		require.Equal(t, "1", a.Header.Get("Retry-After"))
		require.Equal(t, 200, k.send("GET", "/objects", "", withHeader("Authorization", "Bearer bob")).Status)
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 200, k.send("GET", "/objects", "").Status)
	})
}

// stuckBody fails like the body of a client that is too slow.
type stuckBody struct{}

func (stuckBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// deadlineRecorder notes the read deadlines that are set.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlineRecorder) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestBodyHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newHandlerTest(t, weir.New("g", weir.Config{}))
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/drain?name=g", stuckBody{})
		r.Header.Set("Authorization", "Bearer alice")
		r.Header.Set("Content-Type", "application/json")
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		k.handler.ServeHTTP(w, r)
		require.Equal(t, 408, w.Code)
		require.Equal(t, []time.Time{time.Now().Add(10 * time.Second), {}}, w.set)
	})
}
