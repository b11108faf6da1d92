package weir_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bound that SECURITY.md or docs/accuracy.md states is followed by the name of the test that
// checks it, in brackets. The package of the test comes before the name if it is not clear:
//
//	[TestStreamsAreBounded]
//	[limiter: TestConformance, TestGroupConformance; breaker: TestGroupIsBounded]

func TestDocumentedBoundsNameExistingTests(t *testing.T) {
	tests := testsOf(t, os.DirFS("."))
	for _, page := range []string{"SECURITY.md", "docs/accuracy.md"} {
		text, err := readFile(page)
		require.NoError(t, err)
		named := namedTests(text)
		require.Greater(t, len(named), 10, page)
		for _, n := range named {
			require.NoError(t, n.check(tests), page)
		}
	}
}

func TestTheBoundsCheckFindsMistakes(t *testing.T) {
	tests := map[string][]string{"TestGrows": {"window", "limiter"}, "FuzzGrows": {"stat"}}
	for text, want := range map[string]string{
		"It grows [TestGrows].":                           "",
		"It grows [window: TestGrows; stat:\nFuzzGrows].": "",
		"It grows [window: TestGrows, stat: FuzzGrows].":  "",
		"A [link](TestGone), and [no test] [x: y].":       "",
		"It grows [TestGone].":                            "TestGone is not a test",
		"It grows [TestGrows, TestGone].":                 "TestGone is not a test",
		"It grows [breaker: TestGrows].":                  "TestGrows is a test of window, limiter, not of breaker",
		"It grows [window: TestGrows, FuzzGrows].":        "FuzzGrows is a test of stat, not of window",
		"It grows [window: TestGrows and others].":        "TestGrows and others is not a test",
	} {
		var err error
		for _, n := range namedTests(text) {
			if err == nil {
				err = n.check(tests)
			}
		}
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

// namedTest is a test that a page names, with its package if the page names it too.
type namedTest struct{ pkg, name string }

var inBrackets = regexp.MustCompile(`\[([^\[\]]*\b(?:Test|Fuzz)[A-Z][^\[\]]*)\]`)

func namedTests(page string) (list []namedTest) {
	for _, found := range inBrackets.FindAllStringSubmatch(page, -1) {
		pkg := ""
		for _, one := range strings.FieldsFunc(strings.Join(strings.Fields(found[1]), " "), func(r rune) bool { return r == ',' || r == ';' }) {
			name := strings.TrimSpace(one)
			if before, after, ok := strings.Cut(name, ":"); ok {
				pkg, name = strings.TrimSpace(before), strings.TrimSpace(after)
			}
			list = append(list, namedTest{pkg, name})
		}
	}
	return list
}

func (n namedTest) check(tests map[string][]string) error {
	pkgs, ok := tests[n.name]
	if !ok {
		return fmt.Errorf("%s is not a test", n.name)
	}
	for _, pkg := range pkgs {
		if n.pkg == "" || n.pkg == pkg {
			return nil
		}
	}
	return fmt.Errorf("%s is a test of %s, not of %s", n.name, strings.Join(pkgs, ", "), n.pkg)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)

// testsOf returns, for each test name, the folders that have such a test.
func testsOf(t *testing.T, repository fs.FS) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	require.NoError(t, fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(repository, name)
		for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = append(tests[found[1]], path.Dir(name))
		}
		return err
	}))
	return tests
}
