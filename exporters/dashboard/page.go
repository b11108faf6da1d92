package dashboard

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/weir-go/weir/stat"
)

// Page is a live page of figures. It is an [http.Handler], made with [New], and safe for
// concurrent use.
//
// It answers GET and HEAD under any path, of which [http.StripPrefix] has taken
// the part that it is mounted at, for the hosts that [Config].Hosts lets it.
//
// Streams end when the [http.Server] that serves them begins its Shutdown: the
// page registers itself with a server at the first request. Behind a server of
// another kind, or to end them sooner, call [Page.Close].
type Page struct {
	config  Config
	assets  *assets
	sampler *sampler
	clients *clients
	mux     *http.ServeMux
}

// New returns a page of the sources, which it reads once to learn their instruments. The error
// is that of c.Validate, or says that a source is nil or that two different sources have one
// name. [Page.Add] adds sources that are made later.
//
// A source that is given twice, or is part of another as a breaker is of its gate, is shown
// once. A breaker and a limiter of the same name share a line.
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
	p := &Page{config: c, assets: loadAssets(c.Title), sampler: s, clients: newClients()}
	p.mux = http.NewServeMux()
	p.mux.HandleFunc("GET /{$}", p.index)
	p.mux.HandleFunc("GET /assets/{version}/{file}", p.asset)
	p.mux.HandleFunc("GET /snapshot.json", p.snapshot)
	p.mux.HandleFunc("GET /source.json", p.source)
	p.mux.HandleFunc("GET /stream", p.stream)
	return p, nil
}

// Add adds sources, which the next sample shows. It adds none of them and returns
// an error where [read.Set.Add] does: two different ones of one name, or one with
// an instrument that is neither the library's nor known from [New].
func (p *Page) Add(sources ...stat.Source) error { return p.sampler.add(sources) }

// Remove removes the sources, found by ==. They are gone from the next sample.
func (p *Page) Remove(sources ...stat.Source) { p.sampler.remove(sources) }

// Close ends all streams and refuses new ones. The rest of the page goes on, so
// that it may be called while a server shuts down. It does not block, and may be
// called more than once.
func (p *Page) Close() { p.clients.close() }

// ServeHTTP serves the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.clients.watch(r)
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")

	if !p.answers(r) {
		http.Error(w, fmt.Sprintf("the host %.64q is not one of the dashboard's Config.Hosts", r.Host), http.StatusForbidden)
		return
	}
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	switch rest := r.URL.Path; {
	case rest == "" && asked != "" && !strings.HasSuffix(asked, "/"):
		// The page's links are relative, so its own address has to end in a slash. That is said relatively as well:
		// the prefix that was stripped is not known here.
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

// policy lets the page load what it is served with, and nothing from elsewhere;
// no script in the page or in an attribute, and no text is ever made markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
