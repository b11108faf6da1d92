package weirconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxSecret is the size of the largest file that a value can refer to, in bytes.
const maxSecret = 64 << 10

var (
	reference    = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces the references ${NAME} and ${file:/path} of a value. It returns the references
// that were replaced. $${ is a plain ${. The error shows the reference, and never its value.
func expand(value string) (expanded string, refs []string, err error) {
	if !strings.Contains(value, "${") {
		return value, nil, nil
	}
	expanded = reference.ReplaceAllStringFunc(value, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		text, fault := lookUp(ref)
		if fault != nil && err == nil {
			err = fault
		}
		refs = append(refs, ref)
		return text
	})
	return expanded, refs, err
}

// lookUp returns the value of a reference.
func lookUp(ref string) (string, error) {
	name, closed := strings.CutSuffix(strings.TrimPrefix(ref, "${"), "}")
	if path, isFile := strings.CutPrefix(name, "file:"); isFile && closed {
		return secretFile(ref, path)
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
func secretFile(ref, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("refers to %s, whose path must be absolute", ref)
	}
	data, err := readBounded(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("refers to %s, which cannot be read: %w", ref, err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if text == "" || !utf8.ValidString(text) {
		return "", fmt.Errorf("refers to %s, which is empty or is not text in UTF-8", ref)
	}
	return text, nil
}
