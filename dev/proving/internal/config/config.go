// Package config reads from a file in YAML what cmd/prove simulates: a service, its load, faults,
// and guards of weir.
package config

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/limiter"
)

// Config is the content of a configuration file.
type Config struct {
	Title string
	World sim.World
	// Guards are the rows: none, those of the file, the libraries beside them, and the oracle.
	Guards []sim.Maker
	// Seeds is the number of runs for each guard, and Seed the first of their seeds.
	Seeds, Seed uint64
}

// document is the form of a file.
type document struct {
	Title   string
	Service service
	Load    []load
	Faults  []trouble
	For     time.Duration
	Warmup  *time.Duration
	Trouble sim.Span
	Guards  []guard
	Beside  []string
	Seeds   uint64
	Seed    uint64
}

type service struct {
	sim.Service
	Time serviceTime
}

type load struct {
	sim.Client
	Rate   limiter.Rate
	Stream serviceTime
}

type trouble struct {
	sim.Fault
	Capacity *float64 // 0 means no capacity here
}

// The defaults of a file.
const (
	defaultWarmup = 10 * time.Second
	defaultAfter  = 30 * time.Second // simulated after the last fault
	defaultSeeds  = 20
	maxSeeds      = 10_000
)

// Read reads a file. The name appears in errors. The error names the line and the field of
// everything that is wrong with the file.
func Read(name string, r io.Reader) (Config, error) {
	d := &decoder{places: map[string]place{}}
	root, err := parse(r)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	var doc document
	d.decode(root, reflect.ValueOf(&doc).Elem(), "")
	c := Config{Title: doc.Title, Seeds: doc.Seeds, Seed: doc.Seed}
	if len(d.faults) == 0 { // or the rest would be reported as missing
		c.World = doc.world()
		d.invalid("", c.World.Validate())
		c.Guards = d.makers(&doc)
		d.seeds(&c)
	}
	return c, d.err(name)
}

// parse returns the only document of a file.
func parse(r io.Reader) (*yaml.Node, error) {
	var first, second yaml.Node
	d := yaml.NewDecoder(r)
	switch err := d.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	}
	switch err := d.Decode(&second); {
	case err == nil:
		return nil, errors.New("the file has more than one document")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return first.Content[0], nil
}

// world returns the world of the file, with defaults for what follows from the faults.
func (doc *document) world() sim.World {
	w := sim.World{Service: doc.Service.Service, For: doc.For, Warmup: defaultWarmup, Trouble: doc.Trouble}
	w.Service.Time = sim.Distribution(doc.Service.Time)
	for _, l := range doc.Load {
		if l.Rate != (limiter.Rate{}) {
			events, period := l.Rate.Ratio()
			l.Client.Rate = float64(events) / period.Seconds()
		}
		l.Client.Stream = sim.Distribution(l.Stream)
		w.Clients = append(w.Clients, l.Client)
	}
	var all sim.Span
	for i, t := range doc.Faults {
		if t.Capacity != nil && *t.Capacity == 0 {
			t.Fault.Capacity = sim.NoCapacity
		} else if t.Capacity != nil {
			t.Fault.Capacity = *t.Capacity
		}
		w.Faults = append(w.Faults, t.Fault)
		if i == 0 {
			all = t.Span
		}
		all = sim.Span{From: min(all.From, t.From), To: max(all.To, t.To)}
	}
	if doc.Warmup != nil {
		w.Warmup = *doc.Warmup
	}
	if w.Trouble == (sim.Span{}) && all.From < all.To {
		w.Trouble = all
	}
	if w.For == 0 {
		w.For = max(all.To, w.Warmup) + defaultAfter
	}
	return w
}

func (d *decoder) seeds(c *Config) {
	if c.Seeds == 0 {
		c.Seeds = defaultSeeds
	}
	if c.Seeds > maxSeeds {
		d.faults = append(d.faults, fault{d.places["seeds"].line, fmt.Sprintf("seeds is %d, must be at most %d", c.Seeds, maxSeeds)})
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
}

// invalid adds the errors of a Validate, for what is at path. Each begins with packages and fields,
// as in "weir: Breaker: breaker: FailureRate is 2".
func (d *decoder) invalid(path string, err error) {
	if err == nil {
		return
	}
	for text := range strings.SplitSeq(err.Error(), "\n") {
		at := path
		for {
			prefix, rest, more := strings.Cut(text, ": ")
			if !more || strings.Contains(prefix, " ") {
				break
			}
			if inner := normalizedName(at + "." + prefix); d.places[inner].line > 0 {
				at = inner
			}
			text = rest
		}
		d.addLocatedFault(at, strings.ReplaceAll(text, "Clients", "load"))
	}
}

// addLocatedFault adds a fault whose text begins with the name of a field in the object at path. A
// field that is missing in the file gets the line of the object that it belongs to.
func (d *decoder) addLocatedFault(path, text string) {
	field, rest, _ := strings.Cut(text, " ")
	if p, known := d.places[strings.TrimPrefix(normalizedName(path+"."+field), ".")]; known {
		d.faults = append(d.faults, fault{p.line, p.path + " " + rest})
		return
	}
	if path != "" {
		text = d.places[normalizedName(path)].path + ": " + text
	}
	d.faults = append(d.faults, fault{d.places[normalizedName(path)].line, text})
}

// err returns an error with all faults in the order of their lines, or nil if there are none.
func (d *decoder) err(name string) error {
	slices.SortStableFunc(d.faults, func(a, b fault) int { return a.line - b.line })
	var errs []error
	for _, f := range d.faults {
		errs = append(errs, fmt.Errorf("%s:%d: %s", name, f.line, f.text))
	}
	return errors.Join(errs...)
}
