package weirconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// readEvery is how often Watch reads the file.
	readEvery = 2 * time.Second
	// readings is how many readings in a row have to find the same.
	readings = 2
	// shrinkReadings is the same for a file that lacks something: 30s after the first of them.
	shrinkReadings = 16
)

// Watch calls [Set.Update] when the file has changed, or the value of a reference in it, until ctx
// is done, and then returns nil. It reads the file, and the files and variables that it refers to,
// every two seconds. It applies a change when two readings in a row find the same, so after 4s at
// the latest. It sees when a symbolic link is switched, as Kubernetes does for a ConfigMap. At the
// signal SIGHUP it applies the file at once.
//
// Write the new file beside the old one and rename it, so that Watch never sees a part of it. A
// file that lacks an object or a setting of the file in effect may be a part. So it is applied only
// when it has been the same for 30s, or at SIGHUP.
//
// A file that cannot be read or applied changes nothing, and counts as a refused update: see
// [Set.Notice]. It is tried again when its content changes, or the value of a reference in it.
// Watch logs the error to Config.Logger: once while the content, the values and the error stay the
// same, and once more for each SIGHUP. It also logs each update. One failure to read the file is no
// error: an editor may be replacing the file. The set must have been made of a file that [Load] has
// read. Watch reads regular files only, because a pipe could block it.
func (s *Set) Watch(ctx context.Context) error {
	s.mu.RLock()
	file := s.setup.file
	s.mu.RUnlock()
	if file.path == "" {
		return errors.New("weirconfig: Watch needs a file that Load has read")
	}
	hangup := make(chan os.Signal, 1)
	defer notifyHangup(hangup)()
	ticks := time.NewTicker(readEvery)
	defer ticks.Stop()
	w := fileWatch{set: s, path: file.path, done: file.read}
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
	done reading     // what was applied or refused last
	seen readingSums // what was read last
	same int         // how many readings in a row found the same
	gone string      // the error of the last reading, or ""
	told bool        // that error was logged
}

// applyIfStable applies the content if something is new and the last readings found the same.
func (w *fileWatch) applyIfStable() {
	data, err := readRegular(w.path, maxFile)
	if err != nil {
		w.noteReadFailure(err)
		return
	}
	w.gone, w.told = "", false
	before := w.seen
	w.seen = w.done.again(data, readRegular)
	if w.same++; w.seen != before {
		w.same = 1
	}
	if w.seen != w.done.sums && w.same >= readings {
		w.apply(data, w.same >= shrinkReadings)
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
	data, err := readRegular(w.path, maxFile)
	if err != nil {
		w.gone = err.Error()
		w.reportReadFailure(err)
		return
	}
	w.gone, w.told = "", false
	w.apply(data, true)
}

// reportReadFailure reports that the file cannot be read. When the file can be read again, it is
// applied, also if its content has not changed.
func (w *fileWatch) reportReadFailure(err error) {
	w.told, w.done, w.seen, w.same = true, reading{}, readingSums{}, 0
	err = w.set.status.noteResult(fmt.Errorf("weirconfig: %w", err))
	w.set.config.Logger.Error("weirconfig: the file cannot be read", "event.name", "weir.config.failure", "error", err)
}

// apply updates the set to the content that was read last. Unless it may shrink, it does not apply
// a file that lacks something of the file in effect, which may be a part of a file.
func (w *fileWatch) apply(data []byte, mayShrink bool) {
	f, read, err := parse(w.path, data, readRegular)
	if err == nil && !mayShrink {
		if what := w.set.firstLacking(f); what != "" {
			if w.same == readings {
				w.set.config.Logger.Warn("weirconfig: the file may be a part, and is applied when it has been the same for 30s",
					"event.name", "weir.config.wait", "file", w.path, "lacks", what)
			}
			return
		}
	}
	w.done = read
	if err == nil {
		f.path, f.read = w.path, read
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

// firstLacking returns the path of what the file in effect has and the next one lacks, such as
// gates.a or gates.a.rate, or "".
func (s *Set) firstLacking(next *File) string {
	s.mu.RLock()
	now := s.setup.file.parts()
	s.mu.RUnlock()
	then := next.parts()
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if !then[path] {
			return path
		}
	}
	return ""
}

// parts returns the paths of all objects and settings of the file. Rules have their names in the
// place of their numbers.
func (f *File) parts() map[string]bool {
	parts, rules := map[string]bool{}, f.doc().Rules
	for path := range f.lines {
		if rest, ok := strings.CutPrefix(path, "rules["); ok {
			number, rest, _ := strings.Cut(rest, "]")
			if i, err := strconv.Atoi(number); err == nil && i < len(rules) {
				path = "rules." + rules[i].Name + rest
			}
		}
		parts[path] = true
	}
	return parts
}
