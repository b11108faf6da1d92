package weir_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listenPattern matches code that opens a listener. It does not match comments.
var listenPattern = regexp.MustCompile(`(?m)^[^/\n]*\b(?:Listen(?:Config|Packet|TCP|UDP|Unix|AndServe|AndServeTLS)?|httptest\.NewServer)\b`)

func TestTheLibraryOpensNoListener(t *testing.T) {
	for _, module := range libraryDirs(t) {
		for pkg, words := range goList(t, module, "-e", "-f", "{{.ImportPath}} {{.Dir}} {{join .GoFiles \" \"}}") {
			if strings.Contains(pkg, "/internal/redistest") { // starts servers for tests
				continue
			}
			for _, file := range words[1:] {
				text, err := readFile(filepath.Join(words[0], file))
				require.NoError(t, err)
				require.Empty(t, listenPattern.FindString(text), "%s/%s", pkg, file)
			}
		}
	}
}
