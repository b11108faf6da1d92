package dashboard

import (
	"bytes"
	"net/http"
	"time"
)

// patience is how long a client may take to read an event. One that does not read
// loses its place to others after that.
const patience = 10 * time.Second

// stream sends a snapshot, and then with each sample what has changed. Who is too
// slow for that misses samples and gets a snapshot again: nothing is queued.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	ctx, leave, ok := p.clients.enter(r)
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "enough streams are open: ask for snapshot.json now and then", http.StatusServiceUnavailable)
		return
	}
	defer leave()

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events until it has some kilobytes
	out := events{http.NewResponseController(w), w}

	var seen uint64 // the frame that the client knows
	f, err := p.sampler.current(ctx)
	for ; err == nil; f, err = p.sampler.after(ctx, seen) {
		if seen > 0 && f.seq == seen+1 {
			seen, err = f.seq, out.send("delta", f.delta)
		} else {
			n, content := p.sampler.snapshot()
			seen, err = n, out.send("snapshot", content)
		}
		if err != nil {
			return
		}
	}
}

// events writes server-sent events.
type events struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

// send writes an event, of one line, and sees it off. It fails if the client has
// gone or does not read, or if something around the handler does not let events
// pass one by one; the browser then asks for snapshots.
func (e events) send(name string, data []byte) error {
	// Where there is no deadline to set, the server's own holds.
	_ = e.control.SetWriteDeadline(time.Now().Add(patience))
	var event bytes.Buffer
	event.Grow(len(data) + 32)
	event.WriteString("event: " + name + "\ndata: ")
	event.Write(data)
	event.WriteString("\n\n")
	if _, err := e.w.Write(event.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}
