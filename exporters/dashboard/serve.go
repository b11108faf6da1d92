package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

func (p *Page) index(w http.ResponseWriter, r *http.Request) {
	serve(w, r, "text/html; charset=utf-8", p.assets.index)
}

// asset serves a file of the current version. Other versions are not found, because their files do
// not fit together.
func (p *Page) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := p.assets.files[r.PathValue("file")]
	if !ok || r.PathValue("version") != p.assets.version {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	serve(w, r, f.kind, f.content)
}

func (p *Page) snapshot(w http.ResponseWriter, r *http.Request) {
	if _, err := p.sampler.latest(r.Context()); err != nil {
		return // the client has disconnected
	}
	_, content := p.sampler.snapshot()
	serve(w, r, "application/json", content)
}

func (p *Page) source(w http.ResponseWriter, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query) != 1 || len(query["id"]) != 1 || query.Get("id") == "" {
		http.Error(w, "the query must have one id, and nothing else", http.StatusBadRequest)
		return
	}
	if _, err := p.sampler.latest(r.Context()); err != nil {
		return
	}
	d, ok := p.sampler.detail(query.Get("id"))
	if !ok {
		http.Error(w, "there is no source with this id", http.StatusNotFound)
		return
	}
	d.addSettings()
	serve(w, r, "application/json", encode(d))
}

// serve responds with the content, or with 304 if the client has it already.
func serve(w http.ResponseWriter, r *http.Request, kind string, content []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", `"`+shortHash(content)+`"`)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache") // the client may store it, but has to revalidate it
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// shortHash returns a short hash of the content.
func shortHash(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// encode returns v as JSON on one line. It panics on an error, which the types of this package
// cannot cause.
func encode(v any) []byte {
	content, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return content
}

//go:embed assets
var embedded embed.FS

// contentTypes are the content types by extension. The table of package mime depends on the system,
// and browsers refuse scripts of a different type.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are the files of the page. They are served from one folder whose name is a hash of them
// all, so that scripts can import "./chart.js" and no browser mixes two versions.
type assets struct {
	version string
	index   []byte
	files   map[string]asset
}

type asset struct {
	kind    string
	content []byte
}

func loadAssets(title, admin string) *assets {
	a := &assets{files: map[string]asset{}}
	entries, err := embedded.ReadDir("assets")
	if err != nil {
		panic(err) // impossible: the files are embedded
	}
	var all []byte
	for _, e := range entries {
		content, err := embedded.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		a.files[e.Name()] = asset{kind: contentTypes[path.Ext(e.Name())], content: content}
		all = append(append(all, e.Name()...), content...)
	}
	a.version = shortHash(all)
	words := strings.NewReplacer("{{title}}", html.EscapeString(title), "{{assets}}", "assets/"+a.version, "{{admin}}", html.EscapeString(admin))
	a.index = []byte(words.Replace(string(a.files["index.html"].content)))
	delete(a.files, "index.html")
	return a
}
