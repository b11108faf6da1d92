package dashboard

import (
	"bytes"
	"net/http"
	"time"
)

// writeTimeout is how long a client may take to read an event before it is disconnected.
const writeTimeout = 10 * time.Second

// stream sends a snapshot, and then a delta after each sample. No deltas are queued: a client that
// is too slow misses some and gets another snapshot.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	ctx, leave, err := p.clients.add(r)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error()+": poll snapshot.json instead", http.StatusServiceUnavailable)
		return
	}
	defer leave()

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer events
	out := eventWriter{http.NewResponseController(w), w}

	var seen uint64 // the last update sent
	f, err := p.sampler.latest(ctx)
	for ; err == nil; f, err = p.sampler.nextAfter(ctx, seen) {
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

// eventWriter writes server-sent events.
type eventWriter struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

// send writes and flushes an event. The data must be one line. It fails if the client has
// disconnected or does not read, or if a wrapper of the ResponseWriter cannot flush. The page then
// polls snapshots.
func (e eventWriter) send(name string, data []byte) error {
	// If the ResponseWriter cannot set deadlines, the write deadline of the server applies.
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
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
