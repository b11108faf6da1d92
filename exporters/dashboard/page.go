package dashboard

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
// shown once. Of a source with a method Sources, such as a weirconfig.Set, the page shows the
// sources that the method returns at each sample. A breaker and a limiter with the same name share
// a row.
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

// Config configures a [Page]. The zero value is ready to use.
type Config struct {
	// Title is shown on the page, such as the name of the program. Default "weir".
	Title string
	// Interval is the time between samples while the page is open in a browser, from 100ms to 1m.
	// Default 1s.
	Interval time.Duration
	// History is the time span of the charts, from Interval to 3,600 times Interval. Default 5m,
	// but at least one interval and at most 3,600.
	History time.Duration
	// Hosts are the host names under which the page may be requested, without a port. Addresses,
	// localhost and names without a dot are always allowed, and "*" allows all names. A request for
	// another name gets 403. Set Hosts if a proxy on the same machine passes on the name. Default
	// all names, but none for requests over the loopback interface, where DNS rebinding would let a
	// website read the page.
	Hosts []string
	// Admin is the path on the same host at which a handler of package admin for the same sources
	// is mounted, such as "/admin/weir/". The view of a source then has buttons, whose requests
	// that handler authorizes. The page itself stays read-only. Default none: no buttons.
	Admin string
}

const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Minute
	maxSamples  = 3600
)

// Validate returns an error that names every invalid field, or nil.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("dashboard: "+format, args...)) }
	d := c.orDefault()
	if d.Interval < minInterval || d.Interval > maxInterval {
		fault("Interval is %v, must be from %v to %v", c.Interval, minInterval, maxInterval)
	} else if d.History < d.Interval || d.History > maxSamples*d.Interval {
		fault("History is %v, must be from %v to %v where the interval is %v", d.History, d.Interval, maxSamples*d.Interval, d.Interval)
	}
	for n, name := range d.Hosts {
		if !validHost(name) {
			fault("Hosts[%d] is %.64q, must be a name without a port, or \"*\"", n, name)
		}
	}
	if d.Admin != "" && !validPath(d.Admin) {
		fault("Admin is %.64q, must be a path that begins and ends with a slash, such as /admin/weir/", c.Admin)
	}
	return errors.Join(errs...)
}

// validPath reports whether the path is valid in Config.Admin. A browser reads two slashes at the
// beginning as another host.
func validPath(path string) bool {
	u, err := url.Parse(path)
	return err == nil && path == u.EscapedPath() && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && strings.HasSuffix(path, "/")
}

func (c Config) orDefault() Config {
	if c.Title == "" {
		c.Title = "weir"
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.History == 0 {
		c.History = max(min(5*time.Minute, maxSamples*c.Interval), c.Interval)
	}
	return c
}

// noticer is a source that sometimes has a text for the people who operate the program, such as a
// weirconfig.Set whose file was refused.
type noticer interface {
	Notice() string
}

// The largest number of notices that the page shows, and the largest number of bytes of a notice.
const (
	maxNotices = 8
	maxNotice  = 2000
)

// recordNotice records the notice of a source, if it has one.
func (x *extras) recordNotice(source noticer) {
	text := source.Notice()
	if text == "" {
		return
	}
	if len(text) > maxNotice {
		end := maxNotice
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.recorded != nil && len(x.notices) < maxNotices {
		x.notices = append(x.notices, text)
	}
}

// anyHost in Config.Hosts allows all names.
const anyHost = "*"

// allowsHost reports whether the page may be served under the host name of the request. With DNS
// rebinding, a website gives its own name the address of this machine, and then its visitors'
// browsers let it read what is served under any name. It cannot do that with an address, or with a
// name that cannot be registered: one without a dot, or one below localhost.
func (p *Page) allowsHost(r *http.Request) bool {
	host := hostOf(r)
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil, !strings.Contains(host, "."), strings.HasSuffix(host, ".localhost"):
		return true
	case len(p.config.Hosts) > 0:
		return slices.ContainsFunc(p.config.Hosts, func(name string) bool { return name == anyHost || strings.EqualFold(name, host) })
	}
	return !viaLoopback(r)
}

// hostOf returns the requested host name or address, without a port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// viaLoopback reports whether the request came over the loopback interface.
func viaLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// validHost reports whether the name is valid in Config.Hosts.
func validHost(name string) bool {
	return name == anyHost || name != "" && !strings.ContainsAny(name, "*/:[]@ ")
}
