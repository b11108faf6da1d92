package browser_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
)

// site serves the page under a path, as users do.
type site struct {
	*httptest.Server
	page *dashboard.Page
	url  string
}

func serve(t *testing.T, c dashboard.Config, sources ...stat.Source) *site {
	t.Helper()
	page, err := dashboard.New(c, sources...)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/debug/weir/", http.StripPrefix("/debug/weir", page))
	s := &site{Server: httptest.NewServer(mux), page: page}
	t.Cleanup(s.end)
	s.url = s.URL + "/debug/weir/"
	return s
}

// end ends the streams first, because the page would open a new one while Close waits for the last.
func (s *site) end() {
	s.page.Close()
	s.CloseClientConnections()
	s.Close()
}

// visit opens the page and waits until it shows data.
func (b *tab) visit(s *site) {
	b.t.Helper()
	b.do(chromedp.Navigate(s.url))
	b.waitUntil(`performance.getEntriesByName("weir:shown").length`)
}
