package weirconfig

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// maxFile is the size of the largest file, in bytes.
const maxFile = 1 << 20

// File is a file that was read and found valid. It is immutable. Printing, logging or marshaling a
// File shows its name alone, because the File holds the values of its references, which may be
// secrets.
type File struct {
	name string
	// doc is a function, because for some verbs fmt follows a pointer in a struct, and would print
	// the document.
	doc   func() *document
	lines map[string]int // of fields and objects, by their paths
	path  string         // where Load has read it
	sum   [sha256.Size]byte
}

// Load reads the file at path: see [Parse]. At most 1 MB is read.
func Load(path string) (*File, error) {
	data, err := readBounded(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("weirconfig: %w", err)
	}
	return parseFile(path, data)
}

// parseFile is Parse for a file that was read at path.
func parseFile(path string, data []byte) (*File, error) {
	f, err := Parse(path, data)
	if err == nil {
		f.path, f.sum = path, sha256.Sum256(data)
	}
	return f, err
}

// Parse reads a file in YAML or JSON, of at most 1 MB. The name appears in errors.
//
// The error has one line for each fault, in the order of their lines in the file:
//
//	weir.yaml:7: gates.payments.breaker: failure_rate is 2, must be above 0 and at most 1, or off
//
// If there are more than 100 faults, it shows 100 of them and says how many more there are.
func Parse(name string, data []byte) (*File, error) {
	root, err := parseNode(name, data)
	if err != nil {
		return nil, err
	}
	d := &decoder{places: map[string]place{}}
	doc := new(document)
	d.decode(root, reflect.ValueOf(doc).Elem(), "")
	d.validate(doc)
	if err := d.err(name); err != nil {
		return nil, err
	}
	return &File{name: name, doc: func() *document { return doc }, lines: d.lines()}, nil
}

// placeOf returns the place of a field of the object at path, or the place of the nearest object
// around the field.
func (f File) placeOf(path, key string) string {
	full := path + "." + key
	for full != "" {
		if line, ok := f.lines[full]; ok {
			return fmt.Sprintf("%s:%d", f.name, line)
		}
		full = full[:max(strings.LastIndexByte(full, '.'), 0)]
	}
	return f.name
}

// Format prints the name of the file, for every verb.
func (f File) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "weirconfig.File{"+f.name+"}") }

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, nil
}
