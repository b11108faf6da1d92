// Package journal keeps a map in a file, so that it survives the end of the process at any moment.
//
// A commit appends one record for each key that has changed, so its cost does not depend on the
// number of keys. Each record has a checksum. The file is rewritten once most of it is outdated.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Limit is the maximum number of bytes of the current records of a journal. With outdated records,
// the file has up to twice as many and slack more.
const (
	Limit = 16 << 20
	slack = 64 << 10
)

// Journal is a map of JSON values in a file. A Journal must be created by [Open]. It is not safe
// for concurrent use.
//
// Set and Delete change the map in memory, and Commit writes the changes. A commit is not atomic:
// after a kill or a loss of power, the file has the old or the new record of each changed key. It
// has the new ones of all keys once Commit has returned nil.
type Journal struct {
	path, format string
	lock         *os.File

	records map[string][]byte // the current record of each key, a line of the file
	live    int64             // bytes of all current records
	changed map[string]bool   // keys whose current record is not in the file
	size    int64             // of the file
	damaged bool              // the file has damaged records
}

// ForeignError is the error of [Open] for a file that has no valid record of the format.
type ForeignError struct {
	Err error
}

// Error returns the text of Err.
func (e *ForeignError) Error() string { return e.Err.Error() }

// Open locks and reads the file. If there is none, the journal is empty, and the first Commit
// creates the file. The format is the first line of the file, and part of each checksum, so a file
// of another format is foreign. damaged is how many records were skipped because they are not as
// Commit wrote them, such as one that was being written when the power was lost.
//
// The lock is on a second file, with ".lock" after the name. It is held until Close is called or
// the process ends. Open returns an error if another process has the lock (Unix only).
func Open(path, format string) (j *Journal, damaged int, err error) {
	j = &Journal{path: path, format: format, records: map[string][]byte{}, changed: map[string]bool{}}
	j.live = int64(len(j.header()))
	if j.lock, err = lockFile(path + ".lock"); err != nil {
		return nil, 0, err
	}
	if damaged, err = j.read(); err != nil {
		return nil, 0, errors.Join(err, j.Close())
	}
	return j, damaged, nil
}

// Close releases the lock. It writes nothing.
func (j *Journal) Close() error { return j.lock.Close() }

// All yields each key with its value, sorted by key. The value must not be changed.
func (j *Journal) All(yield func(key string, value json.RawMessage) bool) {
	for _, key := range slices.Sorted(maps.Keys(j.records)) {
		var r record
		if json.Unmarshal(j.records[key][checksumSize:], &r) == nil && !yield(key, r.Value) {
			return
		}
	}
}

// Set sets the value of a key. An equal value is no change.
func (j *Journal) Set(key string, value any) error {
	line, err := j.line(key, value)
	if err != nil || bytes.Equal(line, j.records[key]) {
		return err
	}
	j.put(key, line)
	j.changed[key] = true
	return nil
}

// Delete removes a key.
func (j *Journal) Delete(key string) {
	if j.records[key] != nil {
		j.put(key, nil)
		j.changed[key] = true
	}
}

// Commit writes the changes since the last successful Commit, and waits until they are durable. It
// writes nothing if there are none. If the file was removed or damaged in the meantime, or the last
// Commit failed, it writes the whole map.
func (j *Journal) Commit() error {
	if j.live > Limit {
		return fmt.Errorf("the state takes %d bytes, more than %d", j.live, Limit)
	}
	harmed, err := j.harmed()
	if err != nil || len(j.changed) == 0 && !harmed {
		return err
	}
	text, err := j.changes()
	if err != nil {
		return err
	}
	if harmed || j.size+int64(len(text)) > 2*j.live+slack {
		return j.replace()
	}
	return j.append(text)
}

// harmed reports whether the file is not as the last successful Commit left it. After an append
// that failed, it has another size.
func (j *Journal) harmed() (bool, error) {
	info, err := os.Stat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if len(j.records) == 0 { // an empty map needs no file
			clear(j.changed)
		}
		return len(j.records) > 0, nil
	case err != nil:
		return false, err
	}
	return j.damaged || info.Size() != j.size, nil
}

// record is a line of the file, after the checksum. A record without a value deletes the key.
type record struct {
	Key   string          `json:"k"`
	Value json.RawMessage `json:"v,omitempty"`
}

// checksumSize is the number of bytes of the checksum of a line, and of the space after it.
const checksumSize = 9

func (j *Journal) header() string { return j.format + "\n" }

// line returns the record of a key, which deletes the key if value is nil.
func (j *Journal) line(key string, value any) ([]byte, error) {
	r := record{Key: key}
	var err error
	if value != nil {
		if r.Value, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", j.checksum(text), text), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (j *Journal) checksum(text []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(j.format), castagnoli), castagnoli, text)
}

// put sets or removes the current record of a key.
func (j *Journal) put(key string, line []byte) {
	j.live += int64(len(line) - len(j.records[key]))
	if line == nil {
		delete(j.records, key)
	} else {
		j.records[key] = line
	}
}

// changes returns the records of the changed keys.
func (j *Journal) changes() (text []byte, err error) {
	for _, key := range slices.Sorted(maps.Keys(j.changed)) {
		line := j.records[key]
		if line == nil {
			if line, err = j.line(key, nil); err != nil {
				return nil, err
			}
		}
		text = append(text, line...)
	}
	return text, nil
}

// append adds text to the file. It opens the file each time: a file that is open could not be
// replaced on every system, and one that was removed would still take the records.
func (j *Journal) append(text []byte) error {
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if err := writeDurably(f, text); err != nil {
		return err
	}
	j.size += int64(len(text))
	clear(j.changed)
	return nil
}

// replace writes the current records to a new file, which replaces the old one. After a crash at
// any moment, there is one of the two.
func (j *Journal) replace() error {
	var text bytes.Buffer
	text.WriteString(j.header())
	for _, key := range slices.Sorted(maps.Keys(j.records)) {
		text.Write(j.records[key])
	}
	next := j.path + ".tmp"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := writeDurably(f, text.Bytes()); err != nil {
		return err
	}
	if err := os.Rename(next, j.path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(j.path)); err != nil {
		return err
	}
	j.damaged, j.size = false, int64(text.Len())
	clear(j.changed)
	return nil
}

// writeDurably writes text, waits until it is durable, and closes f.
func writeDurably(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes a rename in the directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // the system has no such operation
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read reads the file if there is one.
func (j *Journal) read() (damaged int, err error) {
	info, err := os.Stat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s is not a regular file", j.path)
	}
	f, err := os.Open(j.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	const most = 2*Limit + slack
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return 0, err
	case len(content) > most:
		return 0, &ForeignError{fmt.Errorf("it has more than %d bytes", most)}
	}
	return j.parse(content)
}

// parse applies the records of a file in their order.
func (j *Journal) parse(content []byte) (damaged int, err error) {
	rest, hasHeader := bytes.CutPrefix(content, []byte(j.header()))
	valid := 0
	for line := range bytes.Lines(rest) {
		if j.apply(line) {
			valid++
		} else {
			damaged++
		}
	}
	if !hasHeader && valid == 0 {
		return 0, &ForeignError{fmt.Errorf("it does not begin with %q", j.format)}
	}
	j.size, j.damaged = int64(len(content)), damaged > 0
	return damaged, nil
}

// apply applies a line of the file, and reports whether it is valid.
func (j *Journal) apply(line []byte) bool {
	text, whole := bytes.CutSuffix(line, []byte("\n"))
	if !whole || len(text) < checksumSize {
		return false
	}
	text = text[checksumSize:]
	var r record
	if string(line[:checksumSize]) != fmt.Sprintf("%08x ", j.checksum(text)) || json.Unmarshal(text, &r) != nil {
		return false
	}
	if r.Value == nil {
		j.put(r.Key, nil)
	} else {
		j.put(r.Key, bytes.Clone(line))
	}
	return true
}
