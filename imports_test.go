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

// redistestPath starts servers for tests. Only tests import it, so it may use an internal package
// of the core.
const redistestPath = "fleet/internal/redistest"

// mayImport lists the imports of each package of the core module, without the standard library. All
// internal packages are one entry, and the root package is weir. This table and moduleImports are
// the only place with the allowed imports.
var mayImport = map[string][]string{
	"stat":                {},
	"stat/read":           {"stat", "internal"},
	"stat/view":           {},
	"internal":            {"stat", "stat/view"},
	"window":              {"stat", "internal"},
	"limiter":             {"stat", "stat/view", "window", "internal"},
	"inflight":            {"stat", "stat/view", "window", "limiter", "internal"},
	"limiter/guava":       {"limiter", "internal"},
	"limiter/limitertest": {"limiter"},
	"limiter/quota":       {"stat", "limiter", "internal"},
	"breaker":             {"stat", "stat/view", "window", "internal"},
	"breaker/breakerlog":  {"breaker", "internal"},
	"throttle":            {"stat", "stat/view", "window", "internal"},
	"alert":               {"stat", "stat/view", "window", "internal"},
	"weirtest":            {"weir", "alert", "breaker"},
	"alert/notify":        {"stat", "stat/view", "alert", "breaker", "limiter"},
	"cmd/weir-rules":      {},
	"admin":               {"stat", "stat/view", "alert", "breaker", "inflight", "limiter", "internal"},
	"exporters/dashboard": {"stat", "stat/read", "stat/view", "alert", "limiter", "internal"},
	"weir":                {"stat", "stat/view", "window", "breaker", "inflight", "limiter", "throttle", "internal"},
	"weirredis":           {"weir", "breaker", "inflight"},
	"weirhttp":            {"weir", "stat", "stat/view", "breaker", "inflight", "limiter", "limiter/quota", "throttle", "internal"},
}

// moduleImports lists the imports of each package of the other modules that users import. All
// internal packages of a module are one entry. An import that ends in /... means all packages below
// it.
var moduleImports = map[string][]string{
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
	"fleet":             {"stat", "window", "limiter", "limiter/quota", "breaker", "internal", "fleet/internal", "github.com/redis/go-redis/v9"},
	"fleet/internal":    {"limiter", "github.com/redis/go-redis/v9/..."},
	redistestPath:       {"internal", "github.com/redis/go-redis/v9/..."},
	"fleet/rediscell":   {"limiter", "fleet", "fleet/internal"},
	"fleet/redisson":    {"fleet", "fleet/internal"},
	"weirconfig": {
		"weir", "stat", "alert", "alert/notify", "breaker", "limiter", "weirhttp", "go.yaml.in/yaml/v4",
	},
	"weirconfig/cmd/weirconfig": {"weirconfig"},
	"weirgrpc": {
		"weir", "inflight", "limiter", "breaker", "throttle", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace",
		"google.golang.org/genproto/googleapis/rpc/...", "google.golang.org/grpc/...", "google.golang.org/protobuf/...",
	},
	"weirhttp/otelweir": {"weir", "breaker", "inflight", "limiter", "throttle", "weirhttp", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace"},
}

// isCommand reports whether a module is one that no other module imports. It may import everything.
func isCommand(dir string) bool { return dir == "examples" || strings.HasPrefix(dir, "dev/") }

func TestPackagesImportOnlyAllowedPackages(t *testing.T) {
	allowed := maps.Clone(mayImport)
	maps.Copy(allowed, moduleImports)
	unused := map[string]bool{} // allowed imports that no file has
	for name, row := range allowed {
		for _, entry := range row {
			unused[name+" imports "+entry] = true
		}
	}
	present := map[string]bool{}
	for _, dir := range libraryDirs(t) {
		// With -e the test of the core does not fail if a requirement of another module cannot be
		// downloaded.
		for pkg, imports := range goList(t, dir, "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}") {
			name := packageName(pkg)
			present[name] = true
			require.Contains(t, allowed, name, "%s has no list of imports", pkg)
			for _, imported := range imports {
				if isStandard(imported) || packageName(imported) == name {
					continue
				}
				entry := matchingEntry(allowed[name], packageName(imported))
				require.NotEmptyf(t, entry, "%s imports %s; its row is %v", pkg, imported, allowed[name])
				delete(unused, name+" imports "+entry)
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(allowed)), slices.Collect(maps.Keys(present)), "A: lists of imports, B: packages")
	require.Empty(t, unused, "allowed imports that no file has")
}

// matchingEntry returns the entry of the list that matches the import path or package name, or ""
// if there is none.
func matchingEntry(row []string, imported string) string {
	for _, entry := range row {
		below, all := strings.CutSuffix(entry, "/...")
		if imported == below || all && strings.HasPrefix(imported, below+"/") {
			return entry
		}
	}
	return ""
}

func TestMatchingEntry(t *testing.T) {
	row := []string{"stat", "example.com/grpc/...", "example.com/log"}
	for imported, want := range map[string]string{
		"stat": "stat", "stat/read": "", "window": "", "example.com/grpc": "example.com/grpc/...", "example.com/grpc/codes": "example.com/grpc/...",
		"example.com/grpcs": "", "example.com/log": "example.com/log", "example.com/log/sdk": "",
	} {
		require.Equal(t, want, matchingEntry(row, imported), imported)
	}
}

// A linked package makes a program larger and start more slowly, even if the program never uses it.
func TestGuardsDoNotLinkBigPackages(t *testing.T) {
	for dir, atLeast := range map[string]int{".": 50, "breaker": 40} {
		linked := strings.Fields(string(output(t, dir, "list", "-deps")))
		require.Greater(t, len(linked), atLeast)
		for _, path := range linked {
			require.NotRegexp(t, `^(crypto|encoding/json|log/slog|math/big|net|regexp|text/template)(/|$)`, path)
		}
	}
}

func TestCoreRequiresOnlyTestify(t *testing.T) {
	core := readGoMod(t, ".")
	var direct []string
	for _, r := range core.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}

	require.Equal(t, []string{"github.com/stretchr/testify"}, direct)
	require.Empty(t, core.Replace, "replacements do not apply to users")
	require.Empty(t, core.Tool, "tools belong in module tools")
}

func TestAllModulesHaveTheSameGoVersion(t *testing.T) {
	for _, dir := range moduleDirs(t) {
		mod := readGoMod(t, dir)
		require.Equal(t, "1.26.0", mod.Go, dir)
		require.Empty(t, mod.Toolchain, dir)
	}
}

// packageName returns the name of a package in this repository: its path, cut after "internal", or
// weir for the root package. Any other import path is returned as it is.
func packageName(importPath string) string {
	name, ours := strings.CutPrefix(importPath, module+"/")
	switch {
	case importPath == module:
		return "weir"
	case !ours:
		return importPath
	case name == redistestPath:
		return name
	}
	if before, _, found := strings.Cut("/"+name, "/internal/"); found {
		name = strings.TrimPrefix(before+"/internal", "/")
	}
	return name
}

// isStandard reports whether an import path belongs to the standard library. As in the go command,
// that has no dot in the first element.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// goMod is the output of go mod edit -json.
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

// libraryDirs returns the folders of the modules that users import.
func libraryDirs(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(moduleDirs(t), isCommand)
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

// goList runs go list in the module in dir. It returns the words of each line of the output, in a
// map by the first word of the line.
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
