package weir_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Go code in README.md and in docs is quoted from compiled files. A comment above each block names
// the file and the region:
//
//	<!-- quote: examples/readme/main.go payments -->
//	```go
//	…
//	```
//
// In that file two lines enclose the region:
//
//	//readme:payments
//	…
//	//readme:end
//
// The comparison ignores the indentation of the first of these lines, and blank lines at both ends.

func TestReadmeQuotesCompiledCode(t *testing.T) {
	require.GreaterOrEqual(t, checkPage(t, "README.md"), 3, "README.md must have at least three Go blocks")
}

func TestReadmeSaysHowToGetEveryModule(t *testing.T) {
	text, err := readFile("README.md")
	require.NoError(t, err)
	for _, dir := range libraryDirs(t) {
		require.Regexp(t, `(?m)^go get `+path.Join(module, dir)+`( |$)`, text)
	}
}

func TestDocsQuoteCompiledCode(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	quotes := 0
	for _, page := range pages {
		quotes += checkPage(t, page)
	}
	require.Positive(t, quotes)
}

// checkPage checks every Go block of a page and returns how many there are.
func checkPage(t *testing.T, page string) int {
	t.Helper()
	text, err := readFile(page)
	require.NoError(t, err)
	blocks := goBlocks(page, text)
	for _, b := range blocks {
		require.NoError(t, b.check(readFile))
	}
	return len(blocks)
}

func TestTheQuoteCheckFindsMistakes(t *testing.T) {
	const source = "package p\n\nfunc f() {\n\t//readme:use\n\n\tif ok {\n\t\tgo run()\n\t}\n\t//readme:end\n}\n\n//readme:open\nvar x int\n"
	files := func(name string) (string, error) {
		if name != "use.go" {
			return "", fmt.Errorf("open %s: no such file", name)
		}
		return source, nil
	}
	const code = "if ok {\n\tgo run()\n}\n"
	cases := map[string]struct{ readme, want string }{
		"quoted":           {"<!-- quote: use.go use -->\n```go\n" + code + "```\n", ""},
		"blank line apart": {"<!-- quote: use.go use -->\n\n```go\n" + code + "```\n", ""},
		"a word differs":   {"<!-- quote: use.go use -->\n```go\n" + strings.Replace(code, "run", "walk", 1) + "```\n", "README.md:2 differs from use.go use"},
		"a line is left":   {"<!-- quote: use.go use -->\n```go\nif ok {\n}\n```\n", "README.md:2 differs from use.go use"},
		"no comment":       {"Like so:\n```go\n" + code + "```\n", "README.md:2 has no quote comment"},
		"used up comment":  {"<!-- quote: use.go use -->\n```go\n" + code + "```\n```go\n" + code + "```\n", "README.md:7 has no quote comment"},
		"no region":        {"<!-- quote: use.go gone -->\n```go\n" + code + "```\n", "use.go has no region gone"},
		"no end":           {"<!-- quote: use.go open -->\n```go\nvar x int\n```\n", "use.go has no region open"},
		"no file":          {"<!-- quote: gone.go use -->\n```go\n" + code + "```\n", "open gone.go: no such file"},
		"not compiled":     {"<!-- quote: use.txt use -->\n```go\n" + code + "```\n", "use.txt is no Go file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			for _, b := range goBlocks("README.md", c.readme) {
				if err == nil {
					err = b.check(files)
				}
			}
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// goBlock is a fenced block of Go code and the region that it quotes.
type goBlock struct {
	at           string // the page and the line
	file, region string
	code         string
}

// goBlocks returns the fenced Go blocks of a Markdown page. A comment belongs to the block that
// follows it after blank lines only.
func goBlocks(page, text string) []goBlock {
	var blocks []goBlock
	var quote []string
	inside := false
	for i, line := range strings.Split(text, "\n") {
		fence := strings.TrimSpace(line)
		switch {
		case inside && fence == "```":
			inside, quote = false, nil
		case inside:
			blocks[len(blocks)-1].code += line + "\n"
		case fence == "```go":
			b := goBlock{at: fmt.Sprintf("%s:%d", page, i+1)}
			if len(quote) == 2 {
				b.file, b.region = quote[0], quote[1]
			}
			blocks, inside = append(blocks, b), true
		case strings.HasPrefix(fence, "<!-- quote: "):
			quote = strings.Fields(strings.TrimSuffix(strings.TrimPrefix(fence, "<!-- quote: "), "-->"))
		case fence != "":
			quote = nil
		}
	}
	return blocks
}

// check compares the block with the region that it quotes.
func (b goBlock) check(read func(name string) (string, error)) error {
	if b.file == "" {
		return fmt.Errorf("%s has no quote comment: put <!-- quote: file region --> above it", b.at)
	}
	if !strings.HasSuffix(b.file, ".go") {
		return fmt.Errorf("%s: %s is no Go file", b.at, b.file)
	}
	source, err := read(b.file)
	if err != nil {
		return fmt.Errorf("%s: %w", b.at, err)
	}
	want, found := codeRegion(source, b.region)
	if !found {
		return fmt.Errorf("%s: %s has no region %s", b.at, b.file, b.region)
	}
	if b.code != want {
		return fmt.Errorf("%s differs from %s %s:\n%s\nwant\n%s", b.at, b.file, b.region, b.code, want)
	}
	return nil
}

// codeRegion returns the lines between //readme:name and //readme:end.
func codeRegion(source, name string) (string, bool) {
	var region strings.Builder
	inside, indent := false, ""
	for line := range strings.Lines(source) {
		mark := strings.TrimSpace(line)
		switch {
		case mark == "//readme:"+name:
			inside = true
			indent, _, _ = strings.Cut(line, "//")
		case mark == "//readme:end" && inside:
			return strings.Trim(region.String(), "\n") + "\n", true
		case inside:
			region.WriteString(strings.TrimPrefix(line, indent))
		}
	}
	return "", false
}

func readFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	return string(text), err
}
