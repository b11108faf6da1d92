package alert

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Silence holds back the notifications of some alerts for a time, for example during maintenance.
// Rules are evaluated as usual, and [Alert.SilencedBy] shows which alerts are silenced.
//
// A silenced alert is not sent when it fires, and not repeated. An alert that still fires when the
// silence ends is sent then. If the receiver has heard that an alert fires and the alert resolves
// during the silence, the receiver is told at once, so that no incident stays open. Silences live
// in the process, and begin and end at evaluations. Notifiers whose receiver has silences of its
// own are not affected: see [Notifier].
type Silence struct {
	// Name identifies the silence, in 1 to 200 bytes. Required.
	Name string
	// Match are 1 to 32 conditions on labels, all of which have to hold, in the form of
	// Alertmanager: `alertname="payments fail"`, `severity!=page`, `key=~"db-.*"` or
	// `key!~"db-.*"`. A regular expression has to match the whole value. A label that an alert does
	// not have is the empty text. At least one condition must not hold for the empty text, so that
	// nothing is silenced by mistake. To silence all alerts, use `alertname=~".+"`. Required.
	Match []string
	// StartsAt is when the silence begins. Default now.
	StartsAt time.Time
	// EndsAt is when the silence ends. It must be in the future and after StartsAt. Required.
	EndsAt time.Time
}

// The maximum numbers of silences of a monitor, of conditions of a silence, and of bytes of a name
// and of a condition.
const (
	maxSilences     = 200
	maxMatchers     = 32
	maxSilenceName  = 200
	maxMatcherBytes = 2000
)

// silences are the silences of a monitor. It is safe for concurrent use.
type silences struct {
	mu   sync.Mutex
	list []silence // sorted by name
}

type silence struct {
	Silence
	matchers []matcher
}

// Silence adds a silence, or replaces the one with the same name. The silence takes effect at the
// next evaluation. The error names every invalid field. A monitor has at most 200 silences.
func (m *Monitor) Silence(s Silence) error {
	now := time.Now()
	s.StartsAt = cmp.Or(s.StartsAt, now)
	s.Match = slices.Clone(s.Match)
	matchers, err := s.validate(now)
	if err != nil {
		return err
	}
	return m.silences.set(silence{s, matchers}, now)
}

// EndSilence removes the silence with the name, and reports whether there was one. Alerts that it
// held back are sent after the next evaluation if they still fire.
func (m *Monitor) EndSilence(name string) bool { return m.silences.remove(name) }

// Silences returns the silences that have not ended, sorted by name. The caller owns the result.
func (m *Monitor) Silences() []Silence { return m.silences.all(time.Now()) }

func (s Silence) validate(now time.Time) (matchers []matcher, err error) {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("alert: silence %.100q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Name == "" || len(s.Name) > maxSilenceName || !utf8.ValidString(s.Name) {
		fault("Name must be UTF-8 and take 1 to %d bytes", maxSilenceName)
	}
	if !s.EndsAt.After(now) || !s.EndsAt.After(s.StartsAt) {
		fault("EndsAt is %v, must be in the future and after StartsAt", s.EndsAt)
	}
	if len(s.Match) == 0 || len(s.Match) > maxMatchers {
		fault("Match has %d conditions, must have 1 to %d", len(s.Match), maxMatchers)
		return nil, errors.Join(errs...)
	}
	matchesAll := true
	for _, text := range s.Match {
		parsed, err := parseMatcher(text)
		if err != nil {
			fault("Match has %.200q: %w", text, err)
			matchesAll = false
			continue
		}
		matchers = append(matchers, parsed)
		matchesAll = matchesAll && parsed.matches("")
	}
	if matchesAll {
		fault(`Match holds for an alert without labels; use alertname=~".+" to silence all alerts`)
	}
	return matchers, errors.Join(errs...)
}

func compareNames(s silence, name string) int { return strings.Compare(s.Name, name) }

func (l *silences) set(s silence, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := slices.BinarySearchFunc(l.list, s.Name, compareNames)
	if found {
		l.list[at] = s
		return nil
	}
	if len(l.list) >= maxSilences {
		l.removeEnded(now)
		at, _ = slices.BinarySearchFunc(l.list, s.Name, compareNames)
	}
	if len(l.list) >= maxSilences {
		return fmt.Errorf("alert: silence %.100q: the monitor has %d silences, which is the most", s.Name, maxSilences)
	}
	l.list = slices.Insert(l.list, at, s)
	return nil
}

func (l *silences) remove(name string) (found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := slices.BinarySearchFunc(l.list, name, compareNames)
	if found {
		l.list = slices.Delete(l.list, at, at+1)
	}
	return found
}

func (l *silences) all(now time.Time) []Silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeEnded(now)
	all := make([]Silence, len(l.list))
	for i, s := range l.list {
		all[i] = s.Silence
		all[i].Match = slices.Clone(s.Match)
	}
	return all
}

// removeEnded is called with the lock held.
func (l *silences) removeEnded(now time.Time) {
	l.list = slices.DeleteFunc(l.list, func(s silence) bool { return !now.Before(s.EndsAt) })
}

// markSilenced sets the field SilencedBy of the alerts of an evaluation.
func (l *silences) markSilenced(alerts []Alert, at time.Time) {
	l.mu.Lock()
	active := slices.Clone(l.list)
	l.mu.Unlock()
	active = slices.DeleteFunc(active, func(s silence) bool { return at.Before(s.StartsAt) || !at.Before(s.EndsAt) })
	if len(active) == 0 {
		return
	}
	for i := range alerts {
		by := slices.IndexFunc(active, func(s silence) bool { return s.matchesAlert(alerts[i]) })
		if by >= 0 {
			alerts[i].SilencedBy = active[by].Name
		}
	}
}

func (s silence) matchesAlert(a Alert) bool {
	return !slices.ContainsFunc(s.matchers, func(m matcher) bool { return !m.matches(a.Labels[m.label]) })
}

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
