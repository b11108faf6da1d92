package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Page is docs/protection.md.
type Page struct {
	// Commit is the state of this repository.
	Commit string
	// Versions are the modules of the libraries, each with its version after a space.
	Versions []string
	Seeds    []uint64
	Guards   []sim.Maker
	Left     []guards.Absence
	Results  []Result
}

// enoughSeeds is the number of seeds of a full run.
const enoughSeeds = 20

// Write writes the page. The same figures give the same page.
func (p Page) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# How well guards protect\n\n")
	b.WriteString("<!-- Written by make proving. -->\n\n")
	WriteParagraph(&b, pageIntro)
	p.writeReading(&b)
	p.writeSummary(&b)
	p.writeRows(&b)
	for _, r := range p.Results {
		writeSection(&b, r)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

const pageIntro = "This page compares what guards do for callers and for a service in trouble: weir, other libraries of Go, and no " +
	"guard at all. The libraries are the real ones, unmodified. The service and its callers are simulated, and all of it runs " +
	"in virtual time, in bubbles of testing/synctest. Run it yourself with `make proving`, which takes about 45 minutes on " +
	"two cores."

func (p Page) writeReading(b *strings.Builder) {
	b.WriteString("## How to read it\n\n")
	seeds := fmt.Sprintf("%d", len(p.Seeds))
	if len(p.Seeds) > 0 {
		seeds = fmt.Sprintf("%d seeds, %d to %d", len(p.Seeds), p.Seeds[0], p.Seeds[len(p.Seeds)-1])
	}
	for _, text := range []string{
		"A *call* is one request of a user, with all its retries. It is good, failed, or refused by the guard in the end. An " +
			"*attempt* is one try of it. *Meanwhile* means: of the calls that began while the service was in trouble.",
		"A cell is the median over all seeds, with the lowest and the highest in brackets. Each seed draws its own rates, " +
			"capacities and times, most of them within 30 % of the text, so the range is more about the worlds than about " +
			"the guard. All guards meet the same calls. \"Never\" means: not within the simulated time.",
		"The *oracle* sees the inside of the service, and lets a call through if it will be answered in time. No guard of a " +
			"client can do that. It shows what is possible.",
		"A library with a † refuses calls on a good day, see the first goals. It is not counted as a peer in the goals, because it is easy " +
			"to protect a service by refusing its callers. Each library has a row with its documented defaults and, as " +
			"\"tuned\", one that a reader of its documentation would choose.",
		"A goal binds `weir.Config{}` or the gate that the README recommends, or both. \"The best\" is the best of the peers " +
			"and of no guard at all. Where another guard is better than weir in the first column, the page says so.",
		"An *opening* is each time that a guard begins to refuse all calls. A failed probe of an open breaker is not another one: its users see no change.",
		"A table shows the figures that its scenario is about. All figures of all rows are in " +
			"[protection/figures.csv](protection/figures.csv).",
		"Charts show the run of the first seed, in calls per second by their beginning. The trouble is shaded.",
	} {
		WriteParagraph(b, text)
	}
	made := fmt.Sprintf("These figures were made at commit %s with %s. Seeds 1 to 20 are for tuning.", p.Commit, seeds)
	if len(p.Seeds) < enoughSeeds {
		made += fmt.Sprintf(" They are preliminary: a full run has %d seeds.", enoughSeeds)
	}
	WriteParagraph(b, made)
	b.WriteString("| module | version |\n|---|---|\n")
	for _, v := range p.Versions {
		name, version, _ := strings.Cut(v, " ")
		fmt.Fprintf(b, "| %s | %s |\n", name, version)
	}
	b.WriteString("\n")
}

// writeSummary writes the goals of all scenarios in one table, and where weir loses.
func (p Page) writeSummary(b *strings.Builder) {
	b.WriteString("## Goals\n\n")
	reached, all := 0, 0
	var table strings.Builder
	table.WriteString("| scenario | goal | row | | figure | goal |\n|---|---|---|---|--:|--:|\n")
	for _, r := range p.Results {
		for _, v := range r.Verdicts() {
			all++
			if v.Reached {
				reached++
			}
			fmt.Fprintf(&table, "| [%s](#%s) | %s | %s | %s | %s | %s |\n",
				r.Scenario.Name, anchor(r.Scenario.Title), v.Goal.Text, v.Guard, verdictMark(v), spreadText(v.Figure), boundText(v))
		}
	}
	WriteParagraph(b, fmt.Sprintf("%d of %d goals are reached.", reached, all))
	b.WriteString(table.String() + "\n")
	b.WriteString("### Where weir loses\n\n")
	WriteParagraph(b, "In these scenarios a harmless library, or no guard at all, has a better figure than weir in the first column of the table:")
	for _, r := range p.Results {
		if loss, ok := r.Loss(); ok {
			WriteItem(b, fmt.Sprintf("[%s](#%s): %s.", r.Scenario.Title, anchor(r.Scenario.Title), lossText(loss)))
		}
	}
	b.WriteString("\n")
}

func verdictMark(v Verdict) string {
	if v.Reached {
		return "reached"
	}
	return "**missed**"
}

// writeRows writes a list of the guards, and what each of them lacks.
func (p Page) writeRows(b *strings.Builder) {
	b.WriteString("## The rows\n\n| row | configuration |\n|---|---|\n")
	recommended := false
	for _, g := range p.Guards {
		recommended = recommended || g.Name == guards.Recommended
		fmt.Fprintf(b, "| %s | %s |\n", g.Name, escapeCell(g.Config))
	}
	b.WriteString("\n")
	if !recommended {
		WriteParagraph(b, "The README recommends no other gate than `weir.Config{}` today, so its row stands for both.")
	}
	WriteParagraph(b, "Not in the tables:")
	for _, l := range p.Left {
		WriteItem(b, l.Name+": "+l.Reason+".")
	}
	b.WriteString("\n")
}

// writeSection writes one scenario.
func writeSection(b *strings.Builder, r Result) {
	fmt.Fprintf(b, "## %s\n\n", r.Scenario.Title)
	WriteParagraph(b, r.Scenario.Text)
	fmt.Fprintf(b, "![%s](protection/%s.svg)\n\n", r.Scenario.Title, r.Scenario.Name)
	writeTable(b, cells(r))
	for _, v := range r.Verdicts() {
		WriteItem(b, fmt.Sprintf("%s, %s: %s. It is %s, the goal is %s.", v.Goal.Text, v.Guard, verdictMark(v), spreadText(v.Figure), boundText(v)))
	}
	if loss, ok := r.Loss(); ok {
		WriteItem(b, "**weir loses**: "+lossText(loss)+".")
	}
	for _, broken := range r.Broken {
		WriteItem(b, fmt.Sprintf("%s is missing: with seed %d, %s.", broken.Guard, broken.Seed, broken.Reason))
	}
	b.WriteString("\n")
}

func writeTable(b *strings.Builder, table [][]string) {
	for i, line := range table {
		escaped := make([]string, len(line))
		for j, c := range line {
			escaped[j] = escapeCell(c)
		}
		b.WriteString("| " + strings.Join(escaped, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("--:|", len(line)-1) + "\n")
		}
	}
	b.WriteString("\n")
}
