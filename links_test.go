package weir_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link between pages names a file that exists and, after #, a heading of that page.

func TestLinksOfPagesExist(t *testing.T) {
	found, pages := 0, linkedPages{read: readFile, anchors: map[string]map[string]bool{}}
	for _, page := range append(docs(t), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") {
		text, err := readFile(page)
		require.NoError(t, err)
		for _, link := range linksOf(text) {
			require.NoError(t, pages.check(page, link))
			found++
		}
	}
	require.Greater(t, found, 100)
}

func TestTheLinkCheckFindsMistakes(t *testing.T) {
	pages := map[string]string{
		"docs/a.md": "# The page\n\n## One, `two` and three_four\n\n```sh\n# Not a heading\n```\n\n## Twice\n\n## Twice\n",
	}
	read := func(name string) (string, error) {
		text, ok := pages[name]
		if !ok {
			return "", fmt.Errorf("open %s: %w", name, os.ErrNotExist)
		}
		return text, nil
	}
	for link, want := range map[string]string{
		"docs/a.md":                        "",
		"docs/a.md#one-two-and-three_four": "",
		"docs/a.md#twice-1":                "",
		"#here":                            "",
		"docs/b.md":                        "README.md links to docs/b.md: open docs/b.md: file does not exist",
		"docs/a.md#not-a-heading":          "README.md links to docs/a.md#not-a-heading: no such heading",
		"docs/a.md#One":                    "README.md links to docs/a.md#One: no such heading",
		"#there":                           "README.md links to #there: no such heading",
	} {
		pages["README.md"] = "## Here\n\n[x](" + link + ") and `code[x](y)`\n\n```go\ngo f[T](x)\n```\n"
		links := linksOf(pages["README.md"])
		require.Equal(t, []string{link}, links)
		err := linkedPages{read: read, anchors: map[string]map[string]bool{}}.check("README.md", link)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
}

var (
	codeOfPage = regexp.MustCompile("(?s)(?:^|\n) *```.*?\n *```|`[^`\n]*`")
	linkOfPage = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// linksOf returns the targets of the links of a page within the repository.
func linksOf(text string) (links []string) {
	for _, m := range linkOfPage.FindAllStringSubmatch(codeOfPage.ReplaceAllString(text, ""), -1) {
		if !strings.Contains(m[1], "://") {
			links = append(links, m[1])
		}
	}
	return links
}

// linkedPages reads pages, and keeps the anchors of each.
type linkedPages struct {
	read    func(name string) (string, error)
	anchors map[string]map[string]bool
}

func (p linkedPages) check(page, link string) error {
	file, anchor, _ := strings.Cut(link, "#")
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	if anchor == "" {
		if _, err := os.Stat(name); err == nil { // also a folder
			return nil
		}
	}
	if p.anchors[name] == nil {
		text, err := p.read(name)
		if err != nil {
			return fmt.Errorf("%s links to %s: %w", page, link, err)
		}
		p.anchors[name] = anchorsOf(text)
	}
	if anchor != "" && !p.anchors[name][anchor] {
		return fmt.Errorf("%s links to %s: no such heading", page, link)
	}
	return nil
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	text = regexp.MustCompile("(?s)(?:^|\n) *```.*?\n *```").ReplaceAllString(text, "")
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchor := strings.ReplaceAll(plain, " ", "-")
		for n, first := 1, anchor; anchors[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", first, n)
		}
		anchors[anchor] = true
	}
	return anchors
}
