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

// mayImport has a row for each package of the core module: what it imports besides the standard library. All that is
// internal is one row, and the root package is weir. This table and the next one are the only place that says who may
// import whom.
var mayImport = map[string][]string{
	"stat":                {},
	"stat/read":           {"stat", "internal"},
	"internal":            {"stat"},
	"window":              {"stat", "internal"},
	"limiter":             {"stat", "window", "internal"},
	"limiter/guava":       {"limiter", "internal"},
	"limiter/limitertest": {"limiter"},
	"breaker":             {"stat", "window", "internal"},
	"throttle":            {"stat", "window", "internal"},
	"alert":               {"stat", "window", "internal"},
	"alert/notify":        {"alert", "breaker"},
	"alert/promrules":     {},
	"cmd/weir-rules":      {"alert/promrules"},
	"exporters/dashboard": {"stat", "stat/read", "window", "internal"},
	"weir":                {"stat", "window", "breaker", "limiter", "throttle", "internal"},
	"weirhttp":            {"weir", "stat", "breaker", "limiter", "internal"},
}

// apart has a row for each package of the modules that others import, likewise. All that is internal to a module is one
// row. An entry that ends in /... stands for all packages below.
var apart = map[string][]string{
	"exporters/prom": {
		"stat", "stat/read", "github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_model/go",
		"google.golang.org/protobuf/types/known/timestamppb",
	},
	"exporters/prom/mixin":          {},
	"exporters/otelmetric":          {"stat", "stat/read", "exporters/otelmetric/internal", "go.opentelemetry.io/otel/metric"},
	"exporters/otelmetric/internal": {"stat", "go.opentelemetry.io/otel/attribute"},
	"exporters/otelmetric/producer": {
		"stat", "stat/read", "exporters/otelmetric/internal", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/sdk/...",
	},
	"exporters/otellog": {"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/log"},
	"fleet":             {"stat", "window", "limiter", "breaker", "fleet/internal", "github.com/redis/go-redis/v9"},
	"fleet/internal":    {"limiter", "internal", "github.com/redis/go-redis/v9/..."},
	"fleet/rediscell":   {"limiter", "fleet", "fleet/internal"},
	"fleet/redisson":    {"fleet", "fleet/internal"},
	"weirgrpc": {
		"weir", "limiter", "breaker", "throttle", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace",
		"google.golang.org/genproto/googleapis/rpc/...", "google.golang.org/grpc/...", "google.golang.org/protobuf/...",
	},
	"weirhttp/otelweir": {"weir", "breaker", "limiter", "weirhttp", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace"},
}

// ends are the modules that nobody imports: they may import everything.
var ends = []string{"bench", "examples", "soak", "tests", "tools"}

func TestPackagesImportWhatTheirRowSays(t *testing.T) {
	rows := maps.Clone(mayImport)
	maps.Copy(rows, apart)
	unused := map[string]bool{} // entries of the rows
	for name, row := range rows {
		for _, entry := range row {
			unused[name+" imports "+entry] = true
		}
	}
	present := map[string]bool{}
	for _, dir := range libraries(t) {
		// With -e it is no fault if something that a module requires cannot be downloaded to test the core.
		for pkg, imports := range goList(t, dir, "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}") {
			name := room(pkg)
			present[name] = true
			require.Contains(t, rows, name, "%s has no row", pkg)
			for _, imported := range imports {
				if isStandard(imported) || room(imported) == name {
					continue
				}
				entry := entryFor(rows[name], room(imported))
				require.NotEmptyf(t, entry, "%s imports %s; its row is %v", pkg, imported, rows[name])
				delete(unused, name+" imports "+entry)
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(rows)), slices.Collect(maps.Keys(present)), "A: rows, B: packages")
	require.Empty(t, unused, "entries of rows that are no longer true")
}

// entryFor returns the entry of the row that the import path, or the name of one of ours, fits; "" if none does.
func entryFor(row []string, imported string) string {
	for _, entry := range row {
		below, all := strings.CutSuffix(entry, "/...")
		if imported == below || all && strings.HasPrefix(imported, below+"/") {
			return entry
		}
	}
	return ""
}

func TestEntriesOfRows(t *testing.T) {
	row := []string{"stat", "example.com/grpc/...", "example.com/log"}
	for imported, want := range map[string]string{
		"stat": "stat", "stat/read": "", "window": "", "example.com/grpc": "example.com/grpc/...", "example.com/grpc/codes": "example.com/grpc/...",
		"example.com/grpcs": "", "example.com/log": "example.com/log", "example.com/log/sdk": "",
	} {
		require.Equal(t, want, entryFor(row, imported), imported)
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

// room returns the name of a package of ours: its path in the repository, up to internal if it has that, and weir for
// the root package. Any other import path is returned as it is.
func room(importPath string) string {
	name, ours := strings.CutPrefix(importPath, module+"/")
	switch {
	case importPath == module:
		return "weir"
	case !ours:
		return importPath
	}
	if before, _, found := strings.Cut("/"+name, "/internal/"); found {
		name = strings.TrimPrefix(before+"/internal", "/")
	}
	return name
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

// libraries lists the folders of the modules that others import.
func libraries(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(moduleDirs(t), func(dir string) bool { return slices.Contains(ends, dir) })
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
