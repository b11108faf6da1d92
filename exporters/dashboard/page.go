package dashboard

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/weir-go/weir/stat"
)

// Page is a live web page of metrics. It is an [http.Handler] and safe for concurrent use. A Page
// must be created by [New].
//
// Page serves GET and HEAD requests. If it is not mounted at the root, wrap it in
// [http.StripPrefix]. Config.Hosts restricts the host names that it serves.
//
// Streams end when the [http.Server] that serves them begins its Shutdown. The page registers
// itself with a server at the first request. Behind another kind of server, or to end streams
// sooner, call [Page.Close]. The zero value does not work: use New.
type Page struct {
	config  Config
	assets  *assets
	sampler *sampler
	clients *clients
	mux     *http.ServeMux
}

// New returns a page of the sources. It reads each source once to learn its instruments. The error
// is that of c.Validate, or says that a source is nil or that two different sources have the same
// name. Use [Page.Add] for sources that are created later.
//
// A source that is given twice, or is part of another source as a breaker is part of its gate, is
// shown once. A breaker and a limiter with the same name share a row.
func New(c Config, sources ...stat.Source) (*Page, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.orDefault()
	c.Hosts = slices.Clone(c.Hosts)
	s, err := newSampler(c, sources)
	if err != nil {
		return nil, err
	}
	p := &Page{config: c, assets: loadAssets(c.Title, c.Admin), sampler: s, clients: newClients()}
	p.mux = http.NewServeMux()
	p.mux.HandleFunc("GET /{$}", p.index)
	p.mux.HandleFunc("GET /assets/{version}/{file}", p.asset)
	p.mux.HandleFunc("GET /snapshot.json", p.snapshot)
	p.mux.HandleFunc("GET /source.json", p.source)
	p.mux.HandleFunc("GET /stream", p.stream)
	return p, nil
}

// Add adds sources, which the page shows from the next sample. It returns an error and adds none of
// them if two different sources have the same name, or if a source has an instrument that is
// neither weir's nor that of a source given to [New].
func (p *Page) Add(sources ...stat.Source) error { return p.sampler.add(sources) }

// Remove removes the sources that are == to those given. The page shows them until the next sample.
func (p *Page) Remove(sources ...stat.Source) { p.sampler.remove(sources) }

// Close ends all streams and refuses new ones. Other requests are still served, so Close may be
// called while a server shuts down. It does not block and may be called more than once.
func (p *Page) Close() { p.clients.close() }

// ServeHTTP serves the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.clients.watchServer(r)
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")

	if !p.allowsHost(r) {
		http.Error(w, fmt.Sprintf("the host %.64q is not one of the dashboard's Config.Hosts", r.Host), http.StatusForbidden)
		return
	}
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	switch rest := r.URL.Path; {
	case rest == "" && asked != "" && !strings.HasSuffix(asked, "/"):
		// The page's links are relative, so its address has to end in a slash. The redirect is
		// relative too, because the stripped prefix is unknown here.
		h.Set("Location", "./"+path.Base(asked)+"/")
		w.WriteHeader(http.StatusMovedPermanently)
		return
	case !strings.HasPrefix(rest, "/"): // the prefix was stripped with its slash
		r2 := *r
		url := *r.URL
		url.Path, url.RawPath = "/"+rest, ""
		r2.URL = &url
		r = &r2
	}
	p.mux.ServeHTTP(w, r)
}

// contentSecurityPolicy allows the page to load only its own assets. It forbids inline scripts and
// turning text into markup.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
