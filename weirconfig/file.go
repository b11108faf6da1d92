package weirconfig

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
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
	read  reading
}

// reading is what was read of a file, and of the variables and files that it refers to.
type reading struct {
	sums readingSums
	refs []string // the references
}

// readingSums are equal if the readings are.
type readingSums struct {
	content [sha256.Size]byte
	values  [sha256.Size]byte // of the references
}

// again returns the sums of content that was read now, with the values that the references have
// now. If it is not the content of r, its references are not known before it is parsed.
func (r *reading) again(content []byte, read reader) readingSums {
	sums := readingSums{content: sha256.Sum256(content)}
	if sums.content == r.sums.content {
		refs := newReferences(read)
		for _, ref := range r.refs {
			refs.value(ref)
		}
		sums.values = refs.sum()
	}
	return sums
}

// Load reads the file at path: see [Parse]. At most 1 MB is read.
func Load(path string) (*File, error) {
	data, err := readBounded(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("weirconfig: %w", err)
	}
	f, read, err := parse(path, data, readBounded)
	if err == nil {
		f.path, f.read = path, read
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
	f, _, err := parse(name, data, readBounded)
	return f, err
}

// parse is Parse with the function that reads the files of references. It returns what was read
// also if there is an error.
func parse(name string, data []byte, read reader) (*File, reading, error) {
	was := reading{sums: readingSums{content: sha256.Sum256(data)}}
	root, err := parseNode(name, data)
	if err != nil {
		return nil, was, err
	}
	d := newDecoder(read)
	doc := new(document)
	d.decode(root, reflect.ValueOf(doc).Elem(), "")
	d.validate(doc)
	was.refs = slices.Collect(maps.Keys(d.refs.found))
	was.sums.values = d.refs.sum()
	if err := d.err(name); err != nil {
		return nil, was, err
	}
	return &File{name: name, doc: func() *document { return doc }, lines: d.lines()}, was, nil
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

// readRegular is readBounded for files that may be replaced by a pipe, which could block the reader
// for ever.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readBounded(path, limit)
}

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
