package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
)

func TestStreamSendsASnapshotAndThenDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments, idle := breaker.New("payments", breaker.Config{Cooldown: 5 * time.Second}), breaker.New("idle", breaker.Config{})
		h := startHost(newDefaultPage(payments, idle))
		defer h.Close()
		begin := time.Now()
		s := h.stream(t)
		require.Equal(t, "text/event-stream", s.answer.Header.Get("Content-Type"))
		require.Equal(t, "no-store", s.answer.Header.Get("Cache-Control"))

		name, data := s.next()
		require.Equal(t, "snapshot", name)
		require.Equal(t, 1, data.Seq)
		require.Len(t, data.Rows, 2)
		require.Equal(t, begin.UnixMilli(), data.At)

		name, data = s.next() // two samples make a rate
		require.Equal(t, "delta", name)
		require.Len(t, data.Rows, 2)
		require.Equal(t, begin.Add(time.Second).UnixMilli(), data.At)

		_, data = s.next()
		require.Equal(t, 3, data.Seq)
		require.Empty(t, data.Rows, "nothing has changed")

		openBreaker(payments)
		_, data = s.next()
		require.Len(t, data.Rows, 1)
		require.Equal(t, "open", data.row(t, "payments").State)
		require.Len(t, data.Changes, 1)
		require.Equal(t, begin.Add(3*time.Second).UnixMilli(), data.At)
		s.leave()
	})
}

// TestUpdatesOfAThousandSourcesAreSmall bounds what a second costs the network and the browser.
func TestUpdatesOfAThousandSourcesAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breakers, sources := make([]*breaker.Breaker, 1000), make([]stat.Source, 1000)
		for i := range breakers {
			breakers[i] = breaker.New(fmt.Sprintf("service-%04d", i), breaker.Config{})
			sources[i] = breakers[i]
		}
		h := startHost(newDefaultPage(sources...))
		defer h.Close()
		s := h.stream(t)
		s.next()
		snapshot := s.size
		s.next()

		s.next()
		idle := s.size
		for _, b := range breakers[:50] {
			runCalls(b, 3, 1)
		}
		_, data := s.next()
		require.Len(t, data.Rows, 50)
		changed := s.size
		for _, b := range breakers {
			runCalls(b, 0, 20)
		}
		_, data = s.next()
		require.Len(t, data.Rows, 1000)
		t.Logf("snapshot %d bytes, idle %d, 50 sources with calls %d, 1,000 openings %d", snapshot, idle, changed, s.size)
		require.Less(t, snapshot, 240_000)
		require.Less(t, idle, 200)
		require.Less(t, changed, 12_000)
		require.Less(t, s.size, 640_000)
		s.leave()
	})
}

func TestSourcesAreReadOnceForAllClientsAndOnlyOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newFakeSource("mail")
		page := newDefaultPage(queue)
		h := startHost(page)
		defer h.Close()
		require.Equal(t, int64(1), queue.reads.Load(), "New reads the instruments")
		time.Sleep(time.Hour)
		require.Equal(t, int64(1), queue.reads.Load(), "no client")

		streams := []*stream{h.stream(t), h.stream(t), h.stream(t)}
		for range 10 {
			for _, s := range streams {
				s.next()
			}
			getSnapshot(t, page)
		}
		require.Equal(t, int64(11), queue.reads.Load(), "ten samples serve three streams and ten snapshots")

		streams[0].leave() // another stream continues the sampling
		for range 5 {
			streams[1].next()
			streams[2].next()
		}
		require.Equal(t, int64(16), queue.reads.Load())
		streams[1].leave()
		streams[2].leave()
		time.Sleep(2 * time.Second) // the last one notices at the next event at the latest
		before := queue.reads.Load()
		time.Sleep(time.Hour)
		require.Equal(t, before, queue.reads.Load(), "no client")
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(dashboard.LimitStreams(newPage(dashboard.Config{}), 2))
		defer h.Close()
		one, two := h.stream(t), h.stream(t)
		one.next()
		two.next()

		refused := h.stream(t)
		require.Equal(t, http.StatusServiceUnavailable, refused.answer.StatusCode)
		require.Equal(t, "10", refused.answer.Header.Get("Retry-After"))
		require.Equal(t, "2 streams are open, which is the most: poll snapshot.json instead", refused.text())
		refused.leave()

		one.leave()
		two.next()
		time.Sleep(time.Second)
		three := h.stream(t)
		require.Equal(t, http.StatusOK, three.answer.StatusCode, "another stream has ended")
		three.leave()
		two.leave()
	})
}

func TestThirtyTwoStreamsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(newDefaultPage())
		defer h.Close()
		var streams []*stream
		for range 33 {
			streams = append(streams, h.stream(t))
		}
		for i, s := range streams {
			require.Equal(t, i < 32, s.answer.StatusCode == http.StatusOK, "stream %d", i)
			s.leave()
		}
	})
}

func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newFakeSource("mail")
		h := startHost(dashboard.LimitStreams(newPage(dashboard.Config{}, queue), 2))
		defer h.Close()
		conn, err := h.dial(t.Context())
		require.NoError(t, err)
		// and reads nothing, ever
		_, err = conn.Write([]byte("GET /debug/weir/stream HTTP/1.1\r\nHost: host\r\n\r\n"))
		require.NoError(t, err)
		synctest.Wait()

		begin := time.Now()
		s := h.stream(t)
		for range 9 {
			s.next()
		}
		require.Equal(t, 8*time.Second, time.Since(begin), "each event is on time")
		refused := h.stream(t)
		require.Equal(t, http.StatusServiceUnavailable, refused.answer.StatusCode, "the blocked stream still counts")
		refused.leave()

		time.Sleep(3 * time.Second)
		three := h.stream(t)
		require.Equal(t, http.StatusOK, three.answer.StatusCode)
		three.leave()
		s.leave()
		require.NoError(t, conn.Close())
	})
}

func TestSlowClientGetsAnotherSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(newDefaultPage(newFakeSource("mail")))
		defer h.Close()
		slow, quick := h.stream(t), h.stream(t)
		slow.next()
		for range 6 {
			quick.next()
		}
		// One event was being written, and those after it were skipped.
		name, data := slow.next()
		require.Equal(t, "delta", name)
		require.Equal(t, 2, data.Seq)
		name, data = slow.next()
		require.Equal(t, "snapshot", name)
		require.Equal(t, 6, data.Seq)
		slow.leave()
		quick.leave()
	})
}

func TestStreamsOutliveTheWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(newDefaultPage())
		h.WriteTimeout = 3 * time.Second
		defer h.Close()
		s := h.stream(t)
		for range 20 {
			s.next()
		}
		s.leave()
	})
}

func TestServerShutdownEndsItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newDefaultPage()
		one, two := startHost(page), startHost(page)
		here, there := one.stream(t), two.stream(t)
		here.next()
		there.next()

		begin, down := time.Now(), make(chan error, 1)
		go func() { down <- one.Shutdown(context.WithoutCancel(t.Context())) }()
		require.True(t, here.readToEnd())
		require.NoError(t, <-down)
		require.Less(t, time.Since(begin), time.Second, "the stream ends before the next event")

		there.next() // the other server goes on
		there.leave()
		require.NoError(t, two.Close())
	})
}

func TestCloseEndsStreamsAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newDefaultPage(newFakeSource("mail"))
		h := startHost(page)
		defer h.Close()
		s := h.stream(t)
		s.next()
		page.Close()
		page.Close()
		require.True(t, s.readToEnd())

		refused := h.stream(t)
		require.Equal(t, http.StatusServiceUnavailable, refused.answer.StatusCode)
		require.Equal(t, "the page was closed: poll snapshot.json instead", refused.text())
		refused.leave()
		require.Len(t, getSnapshot(t, page).Rows, 1, "other requests are still served")
	})
}

// unflushableWriter is a ResponseWriter that cannot flush.
type unflushableWriter struct{ http.ResponseWriter }

func TestStreamEndsIfTheResponseCannotFlush(t *testing.T) {
	page := newDefaultPage()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/stream", http.NoBody)
	page.ServeHTTP(unflushableWriter{w}, r) // which returns
	require.Equal(t, http.StatusOK, w.Code)
}

// text returns the first line of the answer.
func (s *stream) text() string {
	s.lines.Scan()
	return s.lines.Text()
}

// readToEnd reads to the end.
func (s *stream) readToEnd() bool {
	for s.lines.Scan() {
	}
	return true
}
