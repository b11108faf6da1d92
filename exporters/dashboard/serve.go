package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

func (p *Page) index(w http.ResponseWriter, r *http.Request) {
	serve(w, r, "text/html; charset=utf-8", p.assets.index)
}

// asset serves a file under the version that the page names. What an older page
// asks for is not found: it would not go with the rest.
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
	if _, err := p.sampler.current(r.Context()); err != nil {
		return // whoever asked has gone
	}
	_, content := p.sampler.snapshot()
	serve(w, r, "application/json", content)
}

func (p *Page) source(w http.ResponseWriter, r *http.Request) {
	if _, err := p.sampler.current(r.Context()); err != nil {
		return
	}
	d, ok := p.sampler.detail(r.FormValue("id"))
	if !ok {
		http.Error(w, "no source has this id now", http.StatusNotFound)
		return
	}
	serve(w, r, "application/json", encode(d))
}

// serve answers with the content, or with 304 to whoever has it.
func serve(w http.ResponseWriter, r *http.Request, kind string, content []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", `"`+digest(content)+`"`)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache") // which allows to keep it, but not to use it unasked
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// digest is a short name for content.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// encode writes one of our own types as JSON, on one line. None of them can fail.
func encode(v any) []byte {
	content, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return content
}
