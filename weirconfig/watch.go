package weirconfig

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// readEvery is how often Watch reads the file.
const readEvery = 2 * time.Second

// Watch calls [Set.Update] when the file has changed, until ctx is done, and then returns nil. It
// reads the file every two seconds, and applies new content when two readings in a row give the
// same content. So it applies a change after 4s at the latest, and never applies a part of a file
// that is being written. It sees when a symbolic link is switched, as Kubernetes does for a
// ConfigMap. At the signal SIGHUP it applies the file at once, also if only the values of
// references are new.
//
// A file that cannot be read or applied changes nothing, and counts as a refused update: see
// [Set.Notice]. Watch logs the error to Config.Logger: once while the content or the error stays
// the same, and once more for each SIGHUP. It also logs each update. One failure to read the file
// is no error: an editor may be replacing the file. The set must have been made of a file that
// [Load] has read.
func (s *Set) Watch(ctx context.Context) error {
	s.mu.RLock()
	file := s.setup.file
	s.mu.RUnlock()
	if file.path == "" {
		return errors.New("weirconfig: Watch needs a file that Load has read")
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ticks := time.NewTicker(readEvery)
	defer ticks.Stop()
	w := fileWatch{set: s, path: file.path, done: file.sum}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			w.applyNow()
		case <-ticks.C:
			w.applyIfStable()
		}
	}
}

// fileWatch is the state of Watch.
type fileWatch struct {
	set  *Set
	path string
	done [sha256.Size]byte // of the content that was applied or refused last
	seen [sha256.Size]byte // of the content that was read last
	gone string            // the error of the last reading, or ""
	told bool              // that error was logged
}

// applyIfStable applies the content if it is new and the last reading found the same content.
func (w *fileWatch) applyIfStable() {
	data, err := readBounded(w.path, maxFile)
	if err != nil {
		w.noteReadFailure(err)
		return
	}
	w.gone, w.told = "", false
	before := w.seen
	w.seen = sha256.Sum256(data)
	if w.seen != w.done && w.seen == before {
		w.apply(data)
	}
}

// noteReadFailure reports that the file cannot be read, if the last reading failed with the same
// error.
func (w *fileWatch) noteReadFailure(err error) {
	again := err.Error() == w.gone
	w.gone, w.told = err.Error(), again && w.told
	if again && !w.told {
		w.reportReadFailure(err)
	}
}

// applyNow applies the content, also if it is not new.
func (w *fileWatch) applyNow() {
	data, err := readBounded(w.path, maxFile)
	if err != nil {
		w.gone = err.Error()
		w.reportReadFailure(err)
		return
	}
	w.gone, w.told, w.seen = "", false, sha256.Sum256(data)
	w.apply(data)
}

// reportReadFailure reports that the file cannot be read. When the file can be read again, it is
// applied, also if its content has not changed.
func (w *fileWatch) reportReadFailure(err error) {
	w.told, w.done, w.seen = true, [sha256.Size]byte{}, [sha256.Size]byte{}
	err = w.set.status.noteResult(fmt.Errorf("weirconfig: %w", err))
	w.set.config.Logger.Error("weirconfig: the file cannot be read", "event.name", "weir.config.failure", "error", err)
}

// apply updates the set to the content that was read last.
func (w *fileWatch) apply(data []byte) {
	w.done = w.seen
	f, err := parseFile(w.path, data)
	if err == nil {
		err = w.set.Update(f)
	} else {
		err = w.set.status.noteResult(err)
	}
	if err != nil {
		w.set.config.Logger.Error("weirconfig: the file was not applied", "event.name", "weir.config.failure", "error", err)
		return
	}
	w.set.config.Logger.Info("weirconfig: the file was applied", "event.name", "weir.config.update", "file", w.path)
}
