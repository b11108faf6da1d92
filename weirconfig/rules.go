package weirconfig

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
)

// valueKind is the kind of value that a rule watches.
type valueKind string

// The values of rules.
const (
	failureRate valueKind = "failure_rate"
	slowRate    valueKind = "slow_rate"
	callRate    valueKind = "rate"
	quantile    valueKind = "quantile"
	burnRate    valueKind = "burn_rate"
	refusals    valueKind = "refusals"
	flaps       valueKind = "flaps"
	tripped     valueKind = "tripped"
)

var valueKinds = []valueKind{failureRate, slowRate, callRate, quantile, burnRate, refusals, flaps, tripped}

// UnmarshalText reads the kind of a value.
func (k *valueKind) UnmarshalText(text []byte) error {
	return setOneOf(k, text, valueKinds)
}

func (k *valueKind) form() string { return joinWords(valueKinds) }

// span is a time span of a value.
type span = time.Duration

// rule returns the rule over a gate or a group.
func (r rule) rule(gate *weir.Gate, group *weir.Group[string]) alert.Rule {
	out := r.Rule
	out.When, out.Resolve = r.When.Condition, r.Resolve.Condition
	if r.Value == tripped && out.When == (alert.Condition{}) {
		out.When = alert.Above(0)
	}
	switch {
	case group == nil:
		out.Value = r.value(gate)
	case r.Value == refusals:
		out.Value = alert.Refusals(group, r.Span)
	default:
		out.Value = alert.Each(group.All(), r.value)
	}
	return out
}

// value returns the value of a gate.
func (r rule) value(g *weir.Gate) alert.Value {
	switch r.Value {
	case failureRate:
		return alert.FailureRate(g, r.Span)
	case slowRate:
		return alert.SlowRate(g, r.Span)
	case callRate:
		return alert.Rate(g, r.Span)
	case quantile:
		return alert.Quantile(g.Breaker(), r.Quantile, r.Span)
	case burnRate:
		return alert.BurnRate(g, r.SLO, r.Span, r.shortSpan())
	case refusals:
		return alert.Refusals(g, r.Span)
	case flaps:
		return alert.Transitions(g, "closed", r.Span)
	case tripped:
		return alert.Bool(g.Tripped)
	}
	return alert.Value{}
}

// shortSpan returns ShortSpan or its default.
func (r rule) shortSpan() time.Duration {
	if r.ShortSpan == 0 {
		return r.Span / 12
	}
	return r.ShortSpan
}

func (d *decoder) checkRules(doc *document) {
	d.addInvalid("monitor", reflect.TypeFor[alert.Config](), doc.Monitor.Validate(), "")
	seen := map[string]int{}
	for i, r := range doc.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		d.checkRule(path, r, doc)
		if first, twice := seen[r.Name]; twice && r.Name != "" {
			d.fault(d.places[path+".name"].line, path, "name is that of rules[%d] too", first)
		}
		seen[r.Name] = i
	}
}

func (d *decoder) checkRule(path string, r rule, doc *document) {
	gate, isGate := doc.Gates[r.Of]
	group, isGroup := doc.Groups[r.Of]
	switch {
	case r.Of == "":
		d.addMissing(path, "of")
	case !isGate && !isGroup:
		d.unknownObject(path, r.Of, doc)
	}
	if r.Value == "" {
		d.addMissing(path, "value")
	}
	d.checkRequired(path, r)
	d.checkSpans(path, r)
	d.checkTexts(path, r)
	for _, key := range []string{"of", "value", "when", "resolve", "span", "short_span", "quantile", "slo"} {
		if d.hasFaultOf(path, key) {
			return
		}
	}
	if isGroup {
		gate = group.Gate
	}
	d.checkValue(path, r, gate)
}

// checkSpans adds faults of span and short_span, because the faults of package alert have the same
// name for both.
func (d *decoder) checkSpans(path string, r rule) {
	for key, t := range map[string]time.Duration{"span": r.Span, "short_span": r.ShortSpan} {
		if t < 0 {
			d.add(d.locate(path, fmt.Sprintf("%s is %v, must be positive", key, t)))
		}
	}
	if r.ShortSpan > 0 && r.Span > 0 && r.ShortSpan >= r.Span {
		text := fmt.Sprintf("short_span is %v, must be shorter than span, %v", r.ShortSpan, r.Span)
		d.add(d.locate(path, text))
	}
}

// checkTexts adds the faults of the fields that are independent of the value of a rule.
func (d *decoder) checkTexts(path string, r rule) {
	texts := r.Rule
	texts.MinCalls, texts.MinBad = min(r.MinCalls, 0), min(r.MinBad, 0)
	texts.Value, texts.When = alert.Gauge(func() float64 { return 0 }), alert.Above(0)
	d.addInvalid(path, reflect.TypeFor[rule](), alert.Config{}.Validate(texts), rulePrefix(r))
}

// checkValue adds the faults of the value of a rule, its spans and conditions.
func (d *decoder) checkValue(path string, r rule, gate weir.Config) {
	at := d.places[path+".value"].line
	if r.Value == quantile && !gate.Breaker.Latency {
		d.fault(at, path, "value is quantile, which requires breaker.latency of %s", quotedKey(r.Of))
	}
	if r.Value == slowRate && gate.Breaker.SlowCall == 0 {
		d.fault(at, path, "value is slow_rate, which requires breaker.slow_call of %s", quotedKey(r.Of))
	}
	value := r
	value.Rule = alert.Rule{Name: cmp.Or(r.Name, "unnamed"), MinCalls: max(r.MinCalls, 0), MinBad: max(r.MinBad, 0)}
	err := alert.Config{}.Validate(value.rule(weir.New("", weir.Config{}), nil))
	d.addInvalid(path, reflect.TypeFor[rule](), err, rulePrefix(value))
}

// rulePrefix is how the faults of a rule begin.
func rulePrefix(r rule) string { return fmt.Sprintf("rule %.100q: ", r.Name) }

// checkRequired adds a fault for each missing field that the value of a rule requires, and for each
// field that is set although it does not apply to the value.
func (d *decoder) checkRequired(path string, r rule) {
	for _, f := range []struct {
		key           string
		set, required bool
		by            bool
	}{
		{"when", r.When.Condition != alert.Condition{}, r.Value != tripped, true},
		{"span", r.Span != 0, r.Value != tripped, r.Value != tripped},
		{"short_span", r.ShortSpan != 0, false, r.Value == burnRate},
		{"quantile", r.Quantile != 0, r.Value == quantile, r.Value == quantile},
		{"slo", r.SLO != 0, r.Value == burnRate, r.Value == burnRate},
	} {
		switch {
		case r.Value == "":
		case f.required && !f.set:
			d.addMissing(path, f.key)
		case f.set && !f.by:
			d.fault(d.places[join(path, f.key)].line, path, "%s is set, must not be for %s", f.key, r.Value)
		}
	}
}

// unknownObject adds a fault about a rule that names no gate or group. If the name comes from a
// reference, it is not shown.
func (d *decoder) unknownObject(path, name string, doc *document) {
	at := d.places[path+".of"]
	if len(at.refs) > 0 {
		d.fault(at.line, path, "of is a value from %s that is not shown, must be the name of a gate or a group", at.refs[0])
		return
	}
	hint := ""
	if near := d.nearestWord(name, maps.Keys(doc.Gates), maps.Keys(doc.Groups)); near != "" {
		hint = fmt.Sprintf(", did you mean %s?", quotedKey(near))
	}
	d.fault(at.line, path, "of is %.60q, must be the name of a gate or a group%s", name, hint)
}
