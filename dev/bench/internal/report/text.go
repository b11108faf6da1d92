package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

// columns is the format of a line of the text table.
const columns = "%-42s %-24s %9s %9s  %-12s %6s  %s\n"

// Header writes the head of the text table.
func Header(w io.Writer) error {
	_, err := fmt.Fprintf(w, columns, "comparison", "", "weir ns", "peer ns", "ratio", "bound", "")
	return err
}

// FloorLines writes the cost of a basic operation of the machine, one line per mode.
func FloorLines(w io.Writer, f rows.Floor, modes ...measure.Mode) error {
	var b strings.Builder
	for i, m := range modes {
		fmt.Fprintf(&b, "%-42s %-24s %9s\n", "floor: "+f.Name, m, formatNumber(f.Costs[i].Median))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Lines writes the result of one comparison, one line per mode.
func Lines(w io.Writer, o rows.Outcome) error {
	var b strings.Builder
	for i, m := range o.Modes {
		weir, peer, ratio := measure.SpreadOf(o.In[i].Weir), measure.SpreadOf(o.In[i].Peer), measure.SpreadOf(o.In[i].Ratio)
		fmt.Fprintf(&b, columns, o.Name, m, formatNumber(weir.Median), formatNumber(peer.Median), ratio, formatBound(o.Bound(m)), remark(o, i))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// remark returns the verdict and other facts about a mode.
func remark(o rows.Outcome, i int) string {
	words := []string{}
	if v := o.Verdict(i); v != measure.NoBound {
		words = append(words, string(v))
	}
	if o.Modes[i] == measure.Threads {
		words = append(words, fmt.Sprintf("worst %.2f", measure.SpreadOf(o.In[i].Ratio).Worst))
	}
	if canary := measure.SpreadOf(o.In[i].Canary).Median; canary > measure.CanaryLimit {
		words = append(words, fmt.Sprintf("canary %.2f", canary))
	}
	if i == 0 && o.Allocs != (rows.Allocs{}) {
		words = append(words, fmt.Sprintf("%d/%d allocs", o.Allocs.Weir, o.Allocs.Peer))
	}
	return strings.Join(words, ", ")
}

func formatBound(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}

// formatNumber formats v with three digits, and as a whole number from 100 on.
func formatNumber(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
