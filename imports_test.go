package weir_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/weir-go/weir"

// mayImport has a row for each room of the core module: whom of ours it may import. All
// that is internal is one room, and the root package is the room weir.
var mayImport = map[string][]string{
	"stat":                {},
	"stat/read":           {"stat", "internal"},
	"internal":            {"stat"},
	"window":              {"stat", "internal"},
	"limiter":             {"stat", "window", "internal"},
	"limiter/limitertest": {"limiter"},
	"breaker":             {"stat", "window", "internal"},
	"throttle":            {"stat", "window", "internal"},
	"alert":               {"stat", "window", "internal"},
	"alert/notify":        {"alert", "breaker"},
	"alert/promrules":     {},
	"exporters/dashboard": {"stat", "stat/read", "window", "internal"},
	"weir":                {"stat", "window", "breaker", "limiter", "internal"},
	"weirhttp":            {"weir"},
}

// apart has a row for each module around the core that others import: what of the core it imports.
var apart = map[string][]string{
	"exporters/prom":       {"stat", "stat/read", "alert/promrules"},
	"exporters/otelmetric": {"stat", "stat/read"},
	"exporters/otellog":    {},
	"fleet":                {"stat", "window", "limiter", "breaker"},
	"weirgrpc":             {"weir", "stat", "limiter", "breaker"},
	"weirhttp/otelweir":    {"weirhttp"},
}

// ends are the modules that nobody imports: they may import everything.
var ends = []string{
	".", "bench", "docs", "examples", "exporters/dashboard/browser", "exporters/otelmetric/parity", "soak",
	"tools", "weirhttp/interop", "weirhttp/load",
}

func TestCoreLinksOnlyItsOwnAndTheStandardLibrary(t *testing.T) {
	for pkg, links := range goList(t, ".", "-f", "{{.ImportPath}} {{join .Deps \" \"}}") {
		below := allBelow(room(pkg))
		for _, link := range links {
			require.Truef(t, isStandard(link) || isOurs(link), "%s links %s; the core links the standard library alone", pkg, link)
			require.Truef(t, isStandard(link) || slices.Contains(below, room(link)), "%s links %s; of ours it may link %v", pkg, link, below)
		}
	}
}

func TestEveryPackageHasARowAndEveryRowAPackage(t *testing.T) {
	rooms := map[string]bool{}
	for pkg := range goList(t, ".", "-f", "{{.ImportPath}}") {
		rooms[room(pkg)] = true
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(rooms)), "A: rows, B: packages")
}

func TestModulesAroundTheCoreImportWhatTheirRowSays(t *testing.T) {
	for dir, row := range apart {
		imported := map[string]bool{}
		// With -e it is no fault if something that they require cannot be downloaded to test the core.
		for pkg, imports := range goList(t, dir, "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}") {
			for _, imp := range imports {
				if isOurs(imp) && !strings.HasPrefix(imp, module+"/"+dir) {
					t.Logf("%s imports %s", pkg, imp)
					imported[room(imp)] = true
				}
			}
		}
		require.ElementsMatchf(t, row, slices.Collect(maps.Keys(imported)), "%s: A: its row, B: its imports", dir)
	}
}

func TestCoreRequiresTestifyAlone(t *testing.T) {
	core := readGoMod(t, ".")
	var direct []string
	for _, r := range core.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}

	require.Equal(t, []string{"github.com/stretchr/testify"}, direct)
	require.Empty(t, core.Replace, "what is replaced here, users do not get")
	require.Empty(t, core.Tool, "tools have a module of their own")
}

func TestEveryModuleAsksForTheSameGoAndNoToolchain(t *testing.T) {
	for _, dir := range moduleDirs(t) {
		mod := readGoMod(t, dir)
		require.Equal(t, "1.26.0", mod.Go, dir)
		require.Empty(t, mod.Toolchain, dir)
	}
}

func TestEveryModuleForOthersHasARow(t *testing.T) {
	dirs := slices.DeleteFunc(moduleDirs(t), func(dir string) bool {
		return slices.Contains(ends, dir)
	})
	require.ElementsMatch(t, slices.Collect(maps.Keys(apart)), dirs, "A: rows, B: modules")
}

// allBelow lists the room itself and every room that can be reached from it by imports.
func allBelow(name string) []string {
	below := []string{name}
	for _, next := range mayImport[name] {
		below = append(below, allBelow(next)...)
	}
	slices.Sort(below)
	return slices.Compact(below)
}

func room(importPath string) string {
	name := strings.TrimPrefix(importPath, module+"/")
	switch {
	case importPath == module:
		return "weir"
	case strings.HasPrefix(name, "internal/"):
		return "internal"
	}
	return name
}

func isOurs(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// isStandard goes by the rule of the go command: only the standard library has no dot in the first element.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// goMod is what the go command prints of a go.mod.
type goMod struct {
	Go        string
	Toolchain string
	Require   []struct {
		Path     string
		Indirect bool
	}
	Replace []any
	Tool    []any
}

func readGoMod(t *testing.T, dir string) goMod {
	t.Helper()
	var mod goMod
	require.NoError(t, json.Unmarshal(output(t, dir, "mod", "edit", "-json"), &mod), dir)
	return mod
}

func moduleDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Base(name) == "go.mod" {
			dirs = append(dirs, path.Dir(name))
		}
		return err
	}))
	return dirs
}

// goList lists the packages of the module in dir: the first word of each line is the key of the others.
func goList(t *testing.T, dir string, args ...string) map[string][]string {
	t.Helper()
	packages := map[string][]string{}
	for line := range strings.Lines(string(output(t, dir, append(append([]string{"list"}, args...), "./...")...))) {
		words := strings.Fields(line)
		packages[words[0]] = words[1:]
	}
	require.NotEmpty(t, packages, dir)
	return packages
}

// output runs the go command in dir, outside any workspace, and returns what it prints.
func output(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoErrorf(t, err, "go %s in %s", strings.Join(args, " "), dir)
	return out
}
