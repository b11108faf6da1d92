package dashboard_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

func TestInvalidConfigs(t *testing.T) {
	for _, c := range []struct {
		config dashboard.Config
		want   string
	}{
		{dashboard.Config{}, ""},
		{dashboard.Config{Title: "shop", Interval: time.Minute, History: 10 * time.Minute}, ""},
		{dashboard.Config{Interval: 100 * time.Millisecond}, ""},
		{dashboard.Config{Interval: time.Millisecond}, "dashboard: Interval is 1ms, must be from 100ms to 1m0s"},
		{dashboard.Config{Interval: time.Hour}, "dashboard: Interval is 1h0m0s, must be from 100ms to 1m0s"},
		{dashboard.Config{History: time.Millisecond}, "dashboard: History is 1ms, must be from 1s to 1h0m0s where the interval is 1s"},
		{dashboard.Config{Interval: 100 * time.Millisecond, History: time.Hour}, "dashboard: History is 1h0m0s, must be from 100ms to 6m0s where the interval is 100ms"},
		{dashboard.Config{History: 2 * time.Hour}, "dashboard: History is 2h0m0s, must be from 1s to 1h0m0s where the interval is 1s"},
		{
			dashboard.Config{Interval: -1},
			"dashboard: Interval is -1ns, must be from 100ms to 1m0s",
		},
	} {
		err := c.config.Validate()
		if c.want == "" {
			require.NoError(t, err, "%+v", c.config)
			continue
		}
		require.EqualError(t, err, c.want)
		_, err = dashboard.New(c.config)
		require.EqualError(t, err, c.want)
	}
}

func TestDuplicateNamesAreAnError(t *testing.T) {
	one, other := breaker.New("payments", breaker.Config{}), breaker.New("payments", breaker.Config{})
	_, want := read.New(func(*stat.Series) int { return 0 }, one, other)
	require.Error(t, want)
	_, err := dashboard.New(dashboard.Config{}, one, other)
	require.EqualError(t, err, want.Error())
	_, err = dashboard.New(dashboard.Config{}, nil)
	require.EqualError(t, err, "stat: source 1 of 1 is nil")

	page := newDefaultPage(one, one)
	require.Len(t, getSnapshot(t, page).Rows, 1, "a source given twice is shown once")
	require.EqualError(t, page.Add(other), want.Error())
}

func TestSecurityHeaders(t *testing.T) {
	page := newDefaultPage()
	for _, path := range []string{"/", "/snapshot.json", "/source.json?id=x", "/stream", "/nowhere"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodHead, path, http.NoBody)
		r.Header.Set("Origin", "https://elsewhere.example")
		page.ServeHTTP(w, r)
		h := w.Header()
		require.Empty(t, h.Get("Access-Control-Allow-Origin"), path)
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			h.Get("Content-Security-Policy"), path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"), path)
		require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"), path)
	}
}

var addressPattern = regexp.MustCompile(`(?:https?:)?//[\w.-]+`)

func TestAssetsHaveNoForeignLinksAndNoInlineScriptOrStyle(t *testing.T) {
	assets := os.DirFS("assets")
	names, err := fs.Glob(assets, "*")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		content, err := fs.ReadFile(assets, name)
		require.NoError(t, err)
		for _, found := range addressPattern.FindAllString(string(content), -1) {
			require.Equal(t, "http://www.w3.org", found, name)
		}
		for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "onclick=", "<style"} {
			require.NotContains(t, string(content), way, name)
		}
	}
}

func TestAssetsAreImmutableUnderAVersionedPath(t *testing.T) {
	page := newDefaultPage()
	index := get(page, "/").Body.String()
	files := regexp.MustCompile(`(?:href|src)="(assets/[^"]+)"`).FindAllStringSubmatch(index, -1)
	require.Len(t, files, 15, index)

	for _, f := range files {
		w := get(page, "/"+f[1])
		require.Equal(t, http.StatusOK, w.Code, f[1])
		require.Equal(t, "public, max-age=31536000, immutable", w.Header().Get("Cache-Control"))
		want := map[string]string{"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
		require.Equal(t, want[f[1][strings.LastIndex(f[1], ".")+1:]], w.Header().Get("Content-Type"), f[1])

		require.Equal(t, http.StatusNotFound, get(page, "/"+strings.Replace(f[1], "/", "/x", 1)).Code, "another version")
	}
	require.Equal(t, http.StatusNotFound, get(page, "/"+strings.Replace(files[0][1], "icon.svg", "index.html", 1)).Code)
}

func TestETags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newDefaultPage(breaker.New("payments", breaker.Config{}))
		id := getSnapshot(t, page).Rows[0].ID
		for _, path := range []string{"/", "/snapshot.json", "/source.json?id=" + id} {
			first := get(page, path)
			require.Equal(t, http.StatusOK, first.Code, path)
			require.Equal(t, "no-cache", first.Header().Get("Cache-Control"), path)
			tag := first.Header().Get("ETag")
			require.Regexp(t, `^"[\w-]{16}"$`, tag, path)

			again := get(page, path, "If-None-Match", `"other", `+tag)
			require.Equal(t, http.StatusNotModified, again.Code, path)
			require.Empty(t, again.Body.String(), path)
			require.Equal(t, http.StatusOK, get(page, path, "If-None-Match", `"other"`).Code, path)
		}
	})
}

func TestPageIsReadOnly(t *testing.T) {
	page := newDefaultPage()
	for _, path := range []string{"/", "/snapshot.json", "/source.json", "/stream"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
			require.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, path)
			require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/snapshot.json", "/stream"} {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, http.NoBody))
		require.Equal(t, http.StatusOK, w.Code, "HEAD %s", path)
		require.Empty(t, w.Body.String(), "HEAD %s", path)
	}
}

func TestPageWorksUnderAnyMount(t *testing.T) {
	page := newDefaultPage()
	for _, c := range []struct {
		mount, strip, ask string
		want              int
		location          string
	}{
		{"/", "", "/", http.StatusOK, ""},
		{"/debug/weir/", "/debug/weir", "/debug/weir/", http.StatusOK, ""},
		{"/debug/weir/", "/debug/weir/", "/debug/weir/", http.StatusOK, ""},
		{"/debug/weir/", "/debug/weir/", "/debug/weir/snapshot.json", http.StatusOK, ""},
		{"/debug/weir", "/debug/weir", "/debug/weir?x=1", http.StatusMovedPermanently, "./weir/"},
		{"/weir/", "/weir", "/weir/nowhere", http.StatusNotFound, ""},
	} {
		mux := http.NewServeMux()
		mux.Handle(c.mount, http.StripPrefix(c.strip, page))
		w := get(mux, c.ask)
		require.Equal(t, c.want, w.Code, "%+v", c)
		require.Equal(t, c.location, w.Header().Get("Location"), "%+v", c)
	}

	for _, link := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(get(page, "/").Body.String(), -1) {
		require.NotRegexp(t, `^/|:`, link[1], "every link is relative")
	}
}

func TestTitleIsEscaped(t *testing.T) {
	page := newPage(dashboard.Config{Title: `<script>"shop"&`})
	body := get(page, "/").Body.String()
	require.Contains(t, body, "<title>&lt;script&gt;&#34;shop&#34;&amp; · weir</title>")
	require.NotContains(t, body, `<script>"`)
	require.Equal(t, `<script>"shop"&`, getSnapshot(t, page).Title)
}

func TestUnknownSourceIsNotFound(t *testing.T) {
	require.Equal(t, http.StatusNotFound, get(newDefaultPage(), "/source.json?id=nothing").Code)
}
