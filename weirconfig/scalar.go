package weirconfig

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/limiter"
)

// off is the text of the value -1, which turns a feature off.
const off = "off"

var durationType = reflect.TypeFor[time.Duration]()

// decodeScalar sets v to a single value. A value with references appears in no fault.
func (d *decoder) decodeScalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.faultAt(n, path, "must be %s", form(v))
		return
	}
	text, refs, err := d.refs.expand(n.Value)
	if _, name := splitPath(path); name == "name" && len(refs) > 0 {
		err = errors.New("has a reference, which a name cannot have because it is shown")
	}
	p := d.places[path]
	p.off, p.refs = text == off, refs
	d.places[path] = p
	d.noteRefs(path, refs)
	if err != nil {
		d.faultAt(n, path, "%v", err)
		return
	}
	switch err := setScalar(v, text); {
	case err == nil:
	case len(refs) > 0:
		d.faultAt(n, path, "is a value from %s that is not shown, must be %s", strings.Join(refs, " and "), form(v))
	case errors.Is(err, errMinusOne):
		d.faultAt(n, path, "is %v", err)
	default:
		d.faultAt(n, path, "is %.60q, must be %s", text, form(v))
	}
}

// setScalar sets v to the value of a text.
func setScalar(v reflect.Value, text string) error {
	if t, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		if text == "" {
			return errors.New("is empty")
		}
		return t.UnmarshalText([]byte(text))
	}
	if v.Kind() == reflect.String {
		if text == "" && v.Type() != reflect.TypeFor[string]() { // one of some words
			return errors.New("is empty")
		}
		v.SetString(text)
		return nil
	}
	if v.Kind() == reflect.Bool {
		return setBool(v, text)
	}
	if text == off && (v.CanInt() || v.CanFloat()) {
		setOff(v)
		return nil
	}
	return setNumber(v, text)
}

func setBool(v reflect.Value, text string) error {
	switch text {
	case "true", "True", "TRUE":
		v.SetBool(true)
	case "false", "False", "FALSE":
		v.SetBool(false)
	default:
		return strconv.ErrSyntax
	}
	return nil
}

// setOff sets v to -1, whatever its type is. For a duration that is -1ns.
func setOff(v reflect.Value) {
	if v.CanFloat() {
		v.SetFloat(-1)
	} else {
		v.SetInt(-1)
	}
}

// errMinusOne is the fault of a number that would turn a feature off by accident.
var errMinusOne = errors.New("-1, must be written as off if the field can be off")

func setNumber(v reflect.Value, text string) error {
	switch {
	case v.Type() == durationType:
		t, err := parseDuration(text)
		if t == -1 {
			err = errMinusOne
		}
		v.SetInt(int64(t))
		return err
	case v.CanInt():
		n, err := parseInt(text, v.Type().Bits())
		if n == -1 {
			err = errMinusOne
		}
		v.SetInt(n)
		return err
	case v.CanFloat():
		x, err := parseNumber(text)
		if x == -1 {
			err = errMinusOne
		}
		v.SetFloat(x)
		return err
	}
	return fmt.Errorf("a %v cannot be read from a file", v.Type())
}

// parseDuration reads a duration such as 5s, or a number that is 0.
func parseDuration(text string) (time.Duration, error) {
	if n, err := parseInt(text, 64); err == nil && n == 0 {
		return 0, nil
	}
	t, err := time.ParseDuration(text)
	if t == 0 && strings.HasPrefix(text, "-") {
		err = strconv.ErrSyntax
	}
	return t, err
}

var (
	decimalPattern = regexp.MustCompile(`^[-+]?[0-9]+$`)
	basePattern    = regexp.MustCompile(`^(0x[0-9A-Fa-f]+|0o[0-7]+)$`) // of YAML
)

// parseInt reads a whole number in a form of YAML or JSON, such as 100, 1e2, 100.0, +1 or 0x10.
func parseInt(text string, bits int) (int64, error) {
	switch {
	case decimalPattern.MatchString(text):
		return strconv.ParseInt(text, 10, bits)
	case basePattern.MatchString(text):
		return strconv.ParseInt(text, 0, bits)
	}
	x, err := parseNumber(text)
	const exact = 1 << 53 // below it, each whole number is a number of its own
	if err != nil || strings.HasSuffix(text, "%") || x != math.Trunc(x) || math.Abs(x) >= exact {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(strconv.FormatFloat(x, 'f', -1, 64), 10, bits)
}

var numberPattern = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?%?$`)

// parseNumber reads a number such as 0.5 or 50%.
func parseNumber(text string) (float64, error) {
	if basePattern.MatchString(text) {
		n, err := strconv.ParseInt(text, 0, 64)
		return float64(n), err
	}
	if !numberPattern.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	digits, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(digits, 64)
	if percent {
		x /= 100
	}
	return x, err
}

// form describes how a value of v's type is written.
func form(v reflect.Value) string {
	if f, ok := reflect.TypeAssert[interface{ form() string }](v.Addr()); ok {
		return f.form()
	}
	switch {
	case v.Type() == durationType:
		return "a duration such as 500ms, 5s or 1h30m"
	case v.Type() == reflect.TypeFor[limiter.Rate]():
		return "a rate such as 100/s, 10/1m, 5000/24h or unlimited"
	case v.Type() == reflect.TypeFor[netip.Prefix]():
		return "a network such as 10.0.0.0/8"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.CanInt():
		return "a whole number"
	case v.CanFloat():
		return "a number such as 0.5 or 50%"
	}
	return "a text"
}
