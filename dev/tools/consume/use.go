package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

// A user uses released modules as a stranger would: from a directory outside the repository, with a
// module cache of its own.
type user struct {
	checkout string // to list packages and copy examples from
	version  string // of the release
	dir      string // where the programs are written
	env      []string
}

// use builds and runs all programs. Modules that are not in the checkout come from the proxies in
// rest.
func use(ctx context.Context, checkout, version, rest, dir string) error {
	proxy := filepath.Join(dir, "proxy")
	if err := writeProxy(ctx, checkout, version, proxy); err != nil {
		return err
	}
	u := user{checkout: checkout, version: version, dir: dir, env: []string{
		"GOWORK=off", "GOENV=off", "GOFLAGS=-mod=mod", "GOPRIVATE=", "GONOPROXY=",
		"GOMODCACHE=" + filepath.Join(dir, "modules"), "GOBIN=" + filepath.Join(dir, "bin"),
		"GOPROXY=file://" + filepath.ToSlash(proxy) + "," + rest,
		"GONOSUMDB=" + modules.Core, // which covers all paths that begin with it
	}}
	list, err := modules.List(ctx, checkout)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(m modules.Module) bool { return !m.Released() })
	for _, m := range list {
		fmt.Printf("-- use %s %s\n", m.Path, version)
		if err := errors.Join(u.program(ctx, path.Base(m.Path), m), u.install(ctx, m)); err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
	}
	fmt.Printf("-- use all %d modules\n", len(list))
	if err := u.program(ctx, "all", list...); err != nil {
		return fmt.Errorf("all modules: %w", err)
	}
	return u.examples(ctx)
}

var program = template.Must(template.New("main.go").Parse(`package main

import (
	"fmt"
	"runtime/debug"
{{range .}}
	_ "{{.}}"{{end}}
)

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		fmt.Println(d.Path, d.Version, d.Replace == nil)
	}
}
`))

// program builds and runs a program that imports all packages of the modules, and checks what is
// linked into it.
func (u user) program(ctx context.Context, name string, list ...modules.Module) error {
	dir := filepath.Join(u.dir, "programs", name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	var imports []string
	get := []string{"get"}
	for _, m := range list {
		libraries, _, err := m.Packages(u.checkout)
		if err != nil {
			return err
		}
		imports = append(imports, libraries...)
		get = append(get, m.Path+"@"+u.version)
	}
	var text strings.Builder
	if err := program.Execute(&text, imports); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text.String()), 0o600); err != nil {
		return err
	}
	// needs every version in any go.mod, even if no package needs it
	all := []string{"list", "-m", "all"}
	if err := u.runGo(ctx, dir, []string{"mod", "init", "example.com/" + name}, get, []string{"build", "-trimpath", "-o", "program"}, all); err != nil {
		return err
	}
	linked, err := modules.Run(ctx, dir, u.env, "./program")
	if err != nil {
		return err
	}
	if err := u.checkLinked(linked, list); err != nil || !coreAlone(list) {
		return err
	}
	packages, err := modules.Run(ctx, dir, u.env, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}")
	if err != nil {
		return err
	}
	return checkPackages(packages)
}

// coreAlone reports whether a program uses no module but the core.
func coreAlone(list []modules.Module) bool { return len(list) == 1 && list[0].Path == modules.Core }

// checkPackages checks the packages outside the standard library that a program of the core alone
// depends on, one per line: all belong to the program or to the core.
func checkPackages(packages string) error {
	for path := range strings.FieldsSeq(packages) {
		if !ofRepository(path) && !strings.HasPrefix(path, "example.com/") {
			return fmt.Errorf("the core depends on %s, want the standard library alone", path)
		}
	}
	return nil
}

// ofRepository reports whether a module or package belongs to this repository.
func ofRepository(path string) bool {
	return path == modules.Core || strings.HasPrefix(path, modules.Core+"/")
}

// checkLinked checks the modules that a program has printed, one per line: all those wanted are
// there, every module of this repository has the version of the release, and none is replaced. A
// program that uses the core alone must link nothing else.
func (u user) checkLinked(linked string, wanted []modules.Module) error {
	missing := map[string]bool{}
	for _, m := range wanted {
		missing[m.Path] = true
	}
	for line := range strings.Lines(linked) {
		fields := strings.Fields(line)
		path := fields[0]
		delete(missing, path)
		switch {
		case ofRepository(path) && (fields[1] != u.version || fields[2] != "true"):
			return fmt.Errorf("linked %s, want version %s, not replaced", line, u.version)
		case coreAlone(wanted) && !ofRepository(path):
			return fmt.Errorf("the core links %s, want the standard library alone", path)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not linked: %v", slices.Sorted(maps.Keys(missing)))
	}
	return nil
}

// install installs the programs of a module by their version, outside any module. A tool is added
// to the module that u.program has made.
func (u user) install(ctx context.Context, m modules.Module) error {
	_, programs, err := m.Packages(u.checkout)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if modules.IsTool(p) {
			dir := filepath.Join(u.dir, "programs", path.Base(m.Path))
			if err := u.runGo(ctx, dir, []string{"get", "-tool", p + "@" + u.version}, []string{"build", "-o", os.DevNull, p}); err != nil {
				return err
			}
			continue
		}
		fmt.Printf("-- install %s\n", p)
		if err := u.runGo(ctx, u.dir, []string{"install", p + "@" + u.version}); err != nil {
			return err
		}
	}
	return nil
}

// runGo runs go commands in the directory dir.
func (u user) runGo(ctx context.Context, dir string, commands ...[]string) error {
	for _, args := range commands {
		if _, err := modules.Run(ctx, dir, u.env, "go", args...); err != nil {
			return err
		}
	}
	return nil
}
