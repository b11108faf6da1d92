package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
)

// The parts of the page's JSON that tests read.
type (
	snapshot struct {
		Title     string
		Seq       int
		At        int64
		Rows      []row
		Alerts    []alertRow
		Notifiers []struct {
			Name                       string
			Delivered, Failed, Pending float64
			FailingSince, DroppedAt    *int64
			LastError                  string
		}
		Changes []change
		Gone    []string
		Faults  faults
		Trails  map[string][][2]*float64
	}
	row struct {
		ID, Name, Kind, State                string
		Since                                *int64
		AtMost                               bool
		Rate, FailureRate, P50, P99, Refused *float64
		Threshold                            *float64
		CallRates                            [2]*float64
		problem
	}
	problem struct {
		Key, Cause, Reason, LastError                string
		Down, Probe, Free, TroubleSince, LastErrorAt *int64
		Openings, Probes, OneOf, Burst               int
		Trouble                                      string
		TroubleAtLeast                               bool
		Limit, Period                                *float64
		Unguarded, NoRoom                            float64
		Slow, SlowLimit, SlowCall                    *float64
		Incidents                                    int
		FirstBegan, LastBegan, LastEnded             *int64
	}
	alertRow struct {
		ID, Name, Severity, State string
		Firing, Pending           float64
		Value, Threshold          *float64
		Below                     bool
		Unit, Worst, NoData       string
		Keys, Silenced            int
		Fault                     string
		FailingSince              *int64
		Late                      bool
	}
	change struct {
		ID, Name, From, To string
		At                 int64
		AtMost             bool
		By                 []struct {
			State string
			Times float64
		}
	}
	detail struct {
		Name, Class string
		Why         string
		Failures    []struct{ Text string }
		Row         *row
		Alert       *alertRow
		Reopens     *float64
		Available   *float64
		Changes     []change
		Incidents   []struct {
			Began    int64
			Ended    *int64
			Openings int
			Cause    string
		}
		Settings []struct{ Name, Value string }
		History  struct {
			At                                       []int64
			State                                    []string
			Passed, Failed, Refused, Value, P50, P99 []*float64
		}
		Metrics []struct {
			Instrument string
			Attrs      [][]string
			Value      *float64
		}
	}
)

// get requests a path, without the prefix that StripPrefix removes.
func get(page http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

func getSnapshot(t *testing.T, page http.Handler) (s snapshot) {
	t.Helper()
	w := get(page, "/snapshot.json")
	require.Equal(t, http.StatusOK, w.Code)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	return s
}

func (s snapshot) row(t *testing.T, name string) row {
	t.Helper()
	for _, r := range s.Rows {
		if r.Name == name {
			return r
		}
	}
	require.FailNow(t, "no such row", "%s in %v", name, s.Rows)
	return row{}
}

func readDetail(t *testing.T, page http.Handler, id string) (d detail) {
	t.Helper()
	w := get(page, "/source.json?id="+id)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
	return d
}

var errDown = errors.New("the service is down")

// runCalls makes n calls.
func runCalls(b interface {
	Run(ctx context.Context, fn func(context.Context) error) error
}, good, bad int,
) {
	for n := range good + bad {
		_ = b.Run(context.Background(), func(context.Context) error {
			if n < good {
				return nil
			}
			return errDown
		})
	}
}

// openBreaker opens a breaker.
func openBreaker(b *breaker.Breaker) { runCalls(b, 0, 20) }

// fakeSource is a source with one metric that counts how often it is read.
type fakeSource struct {
	series *stat.Series
	reads  atomic.Int64
	broken atomic.Bool   // it panics
	hold   chan struct{} // it waits for this, if there is one
	gone   atomic.Bool   // it shows nothing
}

var queueLength = &stat.Instrument{
	Name: "shop.queue.length", Unit: "{order}", Help: "Orders that wait.", Kind: stat.UpDown, Attrs: []string{"shop.queue.name"},
}

func newFakeSource(name string) *fakeSource { return &fakeSource{series: queueLength.Series(name)} }

func (f *fakeSource) Observe(yield func(*stat.Series, float64) bool) {
	n := f.reads.Add(1)
	if f.hold != nil && n > 1 { // the first reading is that of New
		<-f.hold
	}
	if !f.gone.Load() {
		if !yield(f.series, float64(n)) {
			return
		}
	}
	if f.broken.Load() {
		panic("broken")
	}
}

// host serves a page over in-memory connections, which work in a synctest bubble.
type host struct {
	*http.Server
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
	client *http.Client
}

// startHost starts a server. Shutdown or Close must be called in the bubble.
func startHost(page http.Handler) *host {
	h := &host{conns: make(chan net.Conn), closed: make(chan struct{})}
	h.Server = &http.Server{Handler: http.StripPrefix("/debug/weir", page)}
	h.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return h.dial(ctx)
	}}}
	go func() { _ = h.Serve(listener{h}) }()
	return h
}

func (h *host) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case h.conns <- server:
		return client, nil
	case <-h.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct{ *host }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// stream is an open stream of events.
type stream struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Scanner
	size   int // of the last event, in bytes
}

func (h *host) stream(t *testing.T) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/debug/weir/stream", http.NoBody)
	require.NoError(t, err)
	answer, err := h.client.Do(r)
	require.NoError(t, err)
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t: t, answer: answer, lines: lines}
}

// next reads an event.
func (s *stream) next() (name string, data snapshot) {
	s.t.Helper()
	for s.size = 0; s.lines.Scan(); {
		s.size += len(s.lines.Bytes()) + len("\n")
		field, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			require.NoError(s.t, json.Unmarshal([]byte(value), &data))
		case "":
			return name, data
		}
	}
	require.FailNow(s.t, "the stream ended")
	return "", data
}

func (s *stream) leave() { _ = s.answer.Body.Close() }

var _ http.Handler = (*dashboard.Page)(nil)

// newDefaultPage returns a page of the sources with the default config.
func newDefaultPage(sources ...stat.Source) *dashboard.Page {
	return newPage(dashboard.Config{}, sources...)
}

// newPage returns a page of valid sources.
func newPage(c dashboard.Config, sources ...stat.Source) *dashboard.Page {
	page, err := dashboard.New(c, sources...)
	if err != nil {
		panic(err)
	}
	return page
}
