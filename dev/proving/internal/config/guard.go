package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/throttle"
)

// guard is a gate, or a throttle, or a gate with a throttle.
type guard struct {
	Name string
	weir.Config
	Throttle *throttle.Config
}

// makers returns the rows of the document.
func (d *decoder) makers(doc *document) []sim.Maker {
	rows := []sim.Maker{sim.None()}
	add := func(path string, m sim.Maker) {
		if slices.ContainsFunc(rows, func(r sim.Maker) bool { return r.Name == m.Name }) {
			line := d.places[normalizedName(path)].line
			d.faults = append(d.faults, fault{line, fmt.Sprintf("%s is named %q, like another one", path, m.Name)})
		}
		rows = append(rows, m)
	}
	for i, g := range doc.Guards {
		path := fmt.Sprintf("guards[%d]", i)
		d.invalid(path, g.Validate())
		if g.Throttle != nil {
			d.invalid(path+".throttle", g.Throttle.Validate())
		}
		if g.Name == "" {
			g.Name = fmt.Sprintf("guard %d", i+1)
		}
		add(path, g.maker(d.hasGate(path)))
	}
	peers := append(guards.All(), guards.Sought()...)
	for i, name := range doc.Beside {
		path := fmt.Sprintf("beside[%d]", i)
		at := slices.IndexFunc(peers, func(m sim.Maker) bool { return m.Name == name })
		if at < 0 {
			d.faults = append(d.faults, fault{d.places[normalizedName(path)].line, fmt.Sprintf(
				"%s is %q, must be one of %s", path, name, names(peers))})
			continue
		}
		add(path, peers[at])
	}
	add("guards", sim.Oracle())
	return rows
}

// hasGate reports whether the guard has a field of weir.Config.
func (d *decoder) hasGate(path string) bool {
	for at := range d.places {
		field, below := strings.CutPrefix(at, path+".")
		if below && field != "name" && !strings.HasPrefix(field, "throttle") {
			return true
		}
	}
	return false
}

func (g guard) maker(hasGate bool) sim.Maker {
	const about = "as in the file"
	switch {
	case g.Throttle == nil:
		return guards.Gate(g.Name, about, g.Config)
	case !hasGate:
		return guards.Throttle(g.Name, about, *g.Throttle)
	}
	return guards.GateWithThrottle(g.Name, about, g.Config, *g.Throttle)
}

func names(rows []sim.Maker) string {
	var all []string
	for _, m := range rows {
		all = append(all, m.Name)
	}
	return strings.Join(all, "; ")
}
