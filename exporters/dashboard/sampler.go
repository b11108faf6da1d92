package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// sampler reads the sources for all who look, on the goroutine of whoever is the
// first to find that a sample is due. The others wait for it, and for no longer
// than they want to: a source that blocks holds up new figures and nothing else.
type sampler struct {
	interval time.Duration
	set      *read.Set[*figure]
	clocks   *clocks
	board    *board
	epoch    time.Time

	mu    sync.Mutex
	busy  bool          // somebody is reading the sources, not under mu
	next  chan struct{} // closed when last is replaced, or busy ends
	last  *frame
	whole []byte        // the snapshot of last, once somebody has asked for it
	began time.Duration // when the reading for last began
}

func newSampler(c Config, sources []stat.Source) (*sampler, error) {
	s := &sampler{
		interval: c.Interval, clocks: &clocks{}, board: newBoard(c), epoch: time.Now(),
		next: make(chan struct{}), last: &frame{},
	}
	var err error
	s.set, err = read.New(s.board.place, s.clocks.wrap(sources)...)
	return s, err
}

func (s *sampler) add(sources []stat.Source) error { return s.set.Add(s.clocks.wrap(sources)...) }

func (s *sampler) remove(sources []stat.Source) { s.set.Remove(s.clocks.wrap(sources)...) }

// current returns a frame that is not older than the interval.
func (s *sampler) current(ctx context.Context) (*frame, error) {
	s.mu.Lock()
	last, due := s.last, s.due()
	s.mu.Unlock()
	if last.seq > 0 && due > 0 {
		return last, nil
	}
	return s.after(ctx, last.seq)
}

// after returns the first frame after number seq, as soon as it is due. It fails
// only with the error of the context.
func (s *sampler) after(ctx context.Context, seq uint64) (*frame, error) {
	for {
		s.mu.Lock()
		last, next, due, mine := s.last, s.next, s.due(), false
		if last.seq <= seq && due <= 0 && !s.busy {
			s.busy, mine = true, true
		}
		s.mu.Unlock()

		switch {
		case last.seq > seq:
			return last, nil
		case mine:
			s.sample()
		default:
			if err := wait(ctx, next, due); err != nil {
				return nil, err
			}
		}
	}
}

// due is how long it is until the next sample.
func (s *sampler) due() time.Duration {
	if s.last.seq == 0 {
		return 0
	}
	return s.began + s.interval - time.Since(s.epoch)
}

// wait waits for next; or for the time, if there is any left.
func wait(ctx context.Context, next <-chan struct{}, left time.Duration) error {
	var over <-chan time.Time
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-next:
	case <-over:
	}
	return nil
}

// sample reads the sources and publishes a frame. Only who has set busy may call it.
func (s *sampler) sample() {
	defer s.rest()
	began := time.Since(s.epoch)
	s.clocks.begin()
	for f, value := range s.set.Observe {
		s.board.note(f, value)
	}
	times := s.clocks.take()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.board.settle(s.epoch.Add(began), times)
	s.whole = nil
	s.began = began
}

func (s *sampler) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	close(s.next)
	s.next = make(chan struct{})
}

// snapshot returns all that is known, and the number of the frame it stands for.
func (s *sampler) snapshot() (seq uint64, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole == nil {
		s.whole = s.board.snapshot()
	}
	return s.last.seq, s.whole
}

// detail returns all that is known of one source.
func (s *sampler) detail(id string) (*detail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.board.detail(id)
}
