package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/dev/proving/internal/scenario"
)

// Record holds the figures of a full run. Later short runs are compared with it.
type Record struct {
	// Harmless names the guards that reach the goals of all good days.
	Harmless []string
	Reached  []Kept
}

// Kept is a goal that was reached, with the figure that it bounds.
type Kept struct {
	Scenario, Guard, Goal string
	Figure                scenario.Spread
}

// NewRecord returns the record of a whole run.
func NewRecord(results []Result) (rec Record) {
	for _, r := range results {
		for _, row := range r.Rows {
			if row.Harmless && !slices.Contains(rec.Harmless, row.Guard.Name) {
				rec.Harmless = append(rec.Harmless, row.Guard.Name)
			}
		}
		for _, v := range r.Verdicts() {
			if v.Reached {
				rec.Reached = append(rec.Reached, Kept{r.Scenario.Name, v.Guard, v.Goal.Text, v.Figure})
			}
		}
	}
	return rec
}

const recordHead = `# Written by "make proving", and read by "make proving-quick", which fails if a goal is missed by more
# than the range that it had here. Fields are separated by tabs: the guards that refuse nothing on good
# days; and the goals that were reached, as scenario, guard, goal, median, lowest and highest figure.
`

// Write writes the record as text.
func (rec Record) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(recordHead)
	for _, name := range rec.Harmless {
		fmt.Fprintf(&b, "harmless\t%s\n", name)
	}
	for _, k := range rec.Reached {
		fmt.Fprintf(&b, "reached\t%s\t%s\t%s\t%.6g\t%.6g\t%.6g\n",
			k.Scenario, k.Guard, k.Goal, k.Figure.Median, k.Figure.Low, k.Figure.High)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ReadRecord reads what Write has written. Its errors name the line.
func ReadRecord(r io.Reader) (rec Record, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if err := rec.read(lines.Text()); err != nil {
			return rec, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return rec, lines.Err()
}

func (rec *Record) read(line string) error {
	fields := strings.Split(line, "\t")
	switch {
	case strings.HasPrefix(line, "#"):
	case fields[0] == "harmless" && len(fields) == 2:
		rec.Harmless = append(rec.Harmless, fields[1])
	case fields[0] == "reached" && len(fields) == 7:
		k := Kept{Scenario: fields[1], Guard: fields[2], Goal: fields[3]}
		for i, to := range []*float64{&k.Figure.Median, &k.Figure.Low, &k.Figure.High} {
			v, err := strconv.ParseFloat(fields[4+i], 64)
			if err != nil {
				return err
			}
			*to = v
		}
		rec.Reached = append(rec.Reached, k)
	default:
		return fmt.Errorf("%q is not a line of a record", line)
	}
	return nil
}

// Lost returns what has been lost in the scenarios of a short run: goals of the record that are
// missed by more than their range over the seeds.
func (rec Record) Lost(results []Result) (lost []string) {
	for _, k := range rec.Reached {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Scenario.Name == k.Scenario })
		if i < 0 {
			continue
		}
		if reason := k.lostIn(results[i]); reason != "" {
			lost = append(lost, fmt.Sprintf("%s: %s: %s: %s", k.Scenario, k.Guard, k.Goal, reason))
		}
	}
	return lost
}

// lostIn returns why the goal is lost, or "".
func (k Kept) lostIn(r Result) string {
	verdicts := r.Verdicts()
	i := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Guard == k.Guard && v.Goal.Text == k.Goal })
	if i < 0 {
		return "there is no such goal or guard any more: run make proving"
	}
	v := verdicts[i]
	missedBy := v.Figure.Median - v.Bound
	if v.Goal.Figure.More {
		missedBy = -missedBy
	}
	tolerance := k.Figure.High - k.Figure.Low
	if v.Reached || missedBy <= tolerance && !math.IsInf(missedBy, 0) {
		return ""
	}
	return fmt.Sprintf("%s, the goal is %s, and it was %s", spreadText(v.Figure), boundText(v), spreadText(k.Figure))
}
