package weirconfig

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSecret is the size of the largest file that a value can refer to, in bytes.
const maxSecret = 64 << 10

var (
	reference    = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reader reads a file of at most limit bytes.
type reader func(path string, limit int64) ([]byte, error)

// references are the references of a file with their values. Each is looked up once, so a file has
// one value of each.
type references struct {
	read  reader
	found map[string]referred
}

// referred is the value of a reference, or why it has none.
type referred struct {
	text string
	err  error
}

func newReferences(read reader) *references { return &references{read, map[string]referred{}} }

// expand replaces the references ${NAME} and ${file:/path} of a value. It returns the references
// that were replaced. $${ is a plain ${. The error shows the reference, and never its value.
func (r *references) expand(value string) (expanded string, refs []string, err error) {
	if !strings.Contains(value, "${") {
		return value, nil, nil
	}
	expanded = reference.ReplaceAllStringFunc(value, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		found := r.value(ref)
		if found.err != nil && err == nil {
			err = found.err
		}
		refs = append(refs, ref)
		return found.text
	})
	return expanded, refs, err
}

// value returns the value of a reference.
func (r *references) value(ref string) referred {
	found, known := r.found[ref]
	if !known {
		found.text, found.err = r.lookUp(ref)
		r.found[ref] = found
	}
	return found
}

// sum returns a hash of the references that were looked up and of their values.
func (r *references) sum() (sum [sha256.Size]byte) {
	hash := sha256.New()
	for _, ref := range slices.Sorted(maps.Keys(r.found)) {
		found := r.found[ref]
		fmt.Fprintf(hash, "%q %q %v\n", ref, found.text, found.err)
	}
	hash.Sum(sum[:0])
	return sum
}

func (r *references) lookUp(ref string) (string, error) {
	name, closed := strings.CutSuffix(strings.TrimPrefix(ref, "${"), "}")
	if path, isFile := strings.CutPrefix(name, "file:"); isFile && closed {
		return r.secretFile(ref, path)
	}
	if !closed || !variableName.MatchString(name) {
		return "", fmt.Errorf("has the reference %.60q, must be like ${NAME} or ${file:/path}, or $${ for a plain ${", ref)
	}
	text := os.Getenv(name)
	if text == "" {
		return "", fmt.Errorf("refers to %s, which is not set or empty", ref)
	}
	return text, nil
}

// secretFile returns the content of a file without the newline at its end.
func (r *references) secretFile(ref, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("refers to %s, whose path must be absolute", ref)
	}
	data, err := r.read(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("refers to %s, which cannot be read: %w", ref, err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if text == "" || !utf8.ValidString(text) {
		return "", fmt.Errorf("refers to %s, which is empty or is not text in UTF-8", ref)
	}
	return text, nil
}
