package harm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/dev/proving/internal/report"
)

const pageTitle = "## Whom it harms\n"

// SplitPage splits docs/protection.md into the part of make proving and that of make harm-page,
// which is empty if there is none.
func SplitPage(text string) (scenarios, harm string) {
	at := strings.Index(text, pageTitle)
	if at < 0 {
		return strings.TrimRight(text, "\n") + "\n\n", ""
	}
	return text[:at], text[at:]
}

// Page returns the part of docs/protection.md about harm: random worlds of a seed, and known ones.
func Page(all []Found, seed uint64, known []Found) string {
	var b strings.Builder
	b.WriteString(pageTitle + "\n<!-- Written by make harm-page. -->\n\n")
	for _, text := range []string{
		"The scenarios above show what a guard is good for. A list cannot show that it harms no user, so this part is about " +
			"random worlds: each draws its service, its hosts, its load, its callers and its faults from wide ranges. Run it " +
			"with `make harm-page`, and look for worse worlds with `make harm-search`.",
		"*Regret* is the share of the good calls of the best simple guard that a guard loses. The simple guards are no guard, " +
			"and gobreaker by rate: half of at least 20 calls in 10 s, and a timeout of 1 s. Outages are left out, because a " +
			"guard has to refuse there: each span in which at least half of the calls of 10 s, or a run of calls, would fail " +
			"without a guard, and the way back after it.",
		"A guard *harms* a healthy service, which answers 99 % of the calls without a guard, if more than 0.1 % of its calls " +
			"are lost. It harms one that is mostly well, and answers more than half, if the regret is above 5 %, or 2 % for " +
			"`weir.Config{}`. It is *stuck* if it still refuses calls of a healthy service at the end, and *late* if the way " +
			"back takes longer than Window, Cooldown, Recovery, three probes and 20 calls together.",
		fmt.Sprintf("These are %d worlds of seed %d, each with at least %d seeds of calls. A share below 1 %% is never "+
			"judged from fewer than 20,000 calls. [designs.md](designs.md#worlds-that-nothing-was-tuned-on) has the figures of a "+
			"seed that nothing was tuned on, in which weir and gobreaker harm more often.", len(all), seed, leastSeeds),
	} {
		report.WriteParagraph(&b, text)
	}
	b.WriteString("| guard | judged | harms | healthy | mostly well | stuck | late | median | worst 1 % | worst |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for g := range all[0].Verdicts {
		c := count(all, g)
		fmt.Fprintf(&b, "| %s | %d | %d | %d of %d | %d of %d | %d of %d | %d of %d | %.3g %% | %.3g %% | %.3g %% |\n",
			all[0].Verdicts[g].Guard.Name, len(c.regrets), c.harmed(), c.broken[Healthy], c.of[Healthy], c.broken[MostlyWell],
			c.of[MostlyWell], c.stuck, c.ends, c.late, c.ends, c.regret(0.5), c.regret(0.99), c.regret(1))
	}
	b.WriteString("\n| guard | regret | its worst world |\n|---|--:|---|\n")
	for g, v := range all[0].Verdicts {
		worst := slices.MaxFunc(all, func(x, y Found) int {
			return cmp.Compare(x.Verdicts[g].judgedRegret(), y.Verdicts[g].judgedRegret())
		})
		fmt.Fprintf(&b, "| %s | %.3g %% | %s |\n", v.Guard.Name, 100*worst.Verdicts[g].Regret, Describe(worst.World))
	}
	writeKnown(&b, known)
	return b.String()
}

// writeKnown writes the table of known worlds.
func writeKnown(b *strings.Builder, known []Found) {
	if len(known) == 0 {
		return
	}
	b.WriteString("\n### Known worlds\n\n")
	report.WriteParagraph(b, "The search found some of these worlds; the others were made for one cause each. `make harm` judges weir's guards in "+
		"all of them, and fails if one breaks a promise that it kept. The cells are the regret in %, with ✗ where a promise is "+
		"broken. The files are in dev/proving/harm.")
	b.WriteString("| world |")
	for _, v := range known[0].Verdicts {
		fmt.Fprintf(b, " %s |", v.Guard.Name)
	}
	b.WriteString(" what it taught |\n|---|" + strings.Repeat("--:|", len(known[0].Verdicts)) + "---|\n")
	for _, f := range known {
		fmt.Fprintf(b, "| %s: %s |", f.Name, f.Title)
		for _, v := range f.Verdicts {
			fmt.Fprintf(b, " %.2g%s |", 100*v.judgedRegret(), strings.Repeat(" ✗", min(1, len(v.Broken()))))
		}
		fmt.Fprintf(b, " %s |\n", f.Lesson)
	}
}
