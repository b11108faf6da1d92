package weirconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxDepth is how deep lists and objects can be nested. The known fields need a depth of 6.
const maxDepth = 16

// parseNode returns the root of the only document of a file. The errors of the YAML library are
// rewritten as "file:line: text".
func parseNode(name string, data []byte) (*yaml.Node, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: has more than %d bytes", name, maxFile)
	}
	if line := tooLarge(data); line > 0 {
		return nil, fmt.Errorf("%s:%d: has more than %d lines, commas and colons up to here", name, line, maxMarks)
	}
	var first yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(prepare(data)))
	switch err := d.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: is empty", name)
	case err != nil:
		return nil, syntaxError(name, err)
	}
	for {
		var next yaml.Node
		err := d.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntaxError(name, err)
		}
		if !isEmptyDocument(&next) {
			return nil, fmt.Errorf("%s:%d: begins a second document, must have one", name, next.Line)
		}
	}
	root := first.Content[0]
	if line := unsupported(root, 0); line != "" {
		return nil, fmt.Errorf("%s:%s", name, line)
	}
	return root, nil
}

// isEmptyDocument reports whether there is nothing in a document, such as after a last line with
// three dashes, which some tools write.
func isEmptyDocument(n *yaml.Node) bool {
	return len(n.Content) == 1 && isNull(n.Content[0]) && n.Content[0].Value == "" && n.Content[0].Style&yaml.TaggedStyle == 0
}

var yamlDirective = regexp.MustCompile(`^(?:\x{feff})?(?:#.*\n|\s*\n)*%YAML 1\.[0-9]+`)

// prepare returns the file with what the YAML library does not know replaced by what it knows. The
// numbers of lines stay the same.
func prepare(data []byte) []byte {
	if json.Valid(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		return joinSurrogates(data)
	}
	if at := yamlDirective.FindIndex(data); at != nil {
		data = bytes.Clone(data)
		data[bytes.LastIndexByte(data[:at[1]], '%')] = '#'
	}
	return data
}

// joinSurrogates replaces each pair of escapes of JSON that stands for one character, such as
// \ud83d\ude00, by this character.
func joinSurrogates(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			continue
		}
		if r := utf16.DecodeRune(escapedUnit(data[i:]), escapedUnit(data[min(i+6, len(data)):])); r != unicode.ReplacementChar {
			out = utf8.AppendRune(out, r)
			i += 11
			continue
		}
		out = append(out, data[i], data[i+1])
		i++
	}
	return out
}

// escapedUnit returns the number in an escape such as \ud83d at the beginning of data, or 0.
func escapedUnit(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n)
}

// maxMarks bounds the lines, commas and colons of a file. This also bounds the nodes of its tree,
// which take some hundred bytes each.
const maxMarks = 50_000

// tooLarge returns the line at which a file has more than maxMarks, or 0.
func tooLarge(data []byte) int {
	marks, line := 0, 1
	for _, c := range data {
		switch c {
		case '\n':
			line++
			marks++
		case ',', ':', '?', '\r':
			marks++
		}
		if marks > maxMarks {
			return line
		}
	}
	return 0
}

// unsupported returns the line and the reason why the tree cannot be read, or "".
func unsupported(n *yaml.Node, depth int) string {
	switch {
	case depth > maxDepth:
		return fmt.Sprintf("%d: is nested more than %d deep", n.Line, maxDepth)
	case n.Kind == yaml.AliasNode:
		return fmt.Sprintf("%d: has an alias, which is not supported", n.Line)
	case n.Anchor != "":
		return fmt.Sprintf("%d: has an anchor, which is not supported", n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Sprintf("%d: has a tag, which is not supported", n.Line)
	}
	for _, inner := range n.Content {
		if line := unsupported(inner, depth+1); line != "" {
			return line
		}
	}
	return ""
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxError rewrites an error of the YAML library. It shows no text of the file.
func syntaxError(name string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if before, _, found := strings.Cut(text, "unknown anchor"); found {
		text = before + "unknown anchor"
	}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %s", name, m[1], text[len(m[0]):])
	}
	return fmt.Errorf("%s: %s", name, text)
}
