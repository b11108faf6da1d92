package alert

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// matcher is a condition on the value of a label.
type matcher struct {
	label   string
	value   string
	pattern *regexp.Regexp // nil: the value has to be equal
	negated bool
}

func (m matcher) matches(value string) bool {
	if m.pattern != nil {
		return m.pattern.MatchString(value) != m.negated
	}
	return (value == m.value) != m.negated
}

// matcherForm splits a matcher into the label, the operator and the value. The longer operators
// come first, because "=" is the beginning of "=~".
var matcherForm = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*((?s).*?)\s*$`)

// parseMatcher parses one matcher in the form that Alertmanager documents for its configuration.
// The value may be in double quotes, with Go's escapes. A value that is not in quotes must not be
// empty and must not contain a quote.
func parseMatcher(text string) (matcher, error) {
	if len(text) > maxMatcherBytes || !utf8.ValidString(text) {
		return matcher{}, fmt.Errorf("must be UTF-8 and take at most %d bytes", maxMatcherBytes)
	}
	parts := matcherForm.FindStringSubmatch(text)
	if parts == nil {
		return matcher{}, errors.New("must be a label, one of = != =~ !~, and a value")
	}
	m := matcher{label: parts[1], value: parts[3], negated: strings.HasPrefix(parts[2], "!")}
	switch {
	case strings.HasPrefix(m.value, `"`):
		unquoted, err := strconv.Unquote(m.value)
		if err != nil {
			return matcher{}, errors.New("the quoted value is invalid")
		}
		m.value = unquoted
	case m.value == "" || strings.Contains(m.value, `"`):
		return matcher{}, errors.New("the value must be in quotes if it is empty or has quotes")
	}
	if strings.HasSuffix(parts[2], "~") {
		pattern, err := compileWhole(m.value)
		if err != nil {
			return matcher{}, err
		}
		m.pattern = pattern
	}
	return m, nil
}

// maxInstructions is the maximum number of instructions of a regular expression, which take 40
// bytes each. Without repetitions such as x{1000}, an expression of maxMatcherBytes has no more
// than maxInstructions.
const maxInstructions = 2 * maxMatcherBytes

// compileWhole compiles a regular expression that has to match the whole text.
func compileWhole(text string) (*regexp.Regexp, error) {
	// checked alone, so that no ) in it ends the group below
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("the regular expression is invalid")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxInstructions {
		return nil, errors.New("the regular expression is too large")
	}
	return regexp.Compile(`^(?s:` + text + `)$`)
}
