// Command words counts the places in comments, messages and documents that are hard to read or too
// wide, and compares the count with a limit.
//
//	go run -C dev/tools ./words -limit words/limit ..
//
// It fails if the count is above the limit, and asks for a lower limit if the count is below it.
// CONTRIBUTING.md has the rules for the text. Each place is a hint: the reader decides.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	output, err := run(context.Background(), os.Args[1:])
	fmt.Print(output)
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

// run checks the directory that the first argument after the flags names, and returns the report.
func run(ctx context.Context, args []string) (string, error) {
	flags := flag.NewFlagSet("words", flag.ContinueOnError)
	limitFile := flags.String("limit", "words/limit", "the `file` that holds the highest count allowed")
	all := flags.Bool("all", false, "list every place, whatever the count")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	limit, err := readLimit(*limitFile)
	if err != nil {
		return "", err
	}
	places, err := scanTree(ctx, cmp.Or(flags.Arg(0), "."))
	if err != nil {
		return "", err
	}
	output := summary(places)
	if *all || len(places) > limit {
		output = list(places) + output
	}
	switch count := len(places); {
	case count > limit:
		return output, fmt.Errorf("%d places are hard to read, and the limit is %d: rewrite the new ones", count, limit)
	case count < limit:
		output += fmt.Sprintf("please lower the number in %s from %d to %d\n", *limitFile, limit, count)
	}
	return output, nil
}

func readLimit(name string) (int, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("%s must hold one number, at least 0", name)
	}
	return limit, nil
}

// scanTree scans the files in dir that git knows, and new files that git does not ignore.
func scanTree(ctx context.Context, dir string) (places []finding, err error) {
	command := exec.CommandContext(ctx, "git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", dir, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		split := splitterFor(name)
		if split == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) { // deleted, but not yet committed
			continue
		}
		if err != nil {
			return nil, err
		}
		places = append(places, scan(name, split(string(text)))...)
		places = append(places, tooWide(name, string(text))...)
	}
	return places, nil
}

// list has one line per place.
func list(places []finding) string {
	var b strings.Builder
	for _, p := range places {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// summary has one line per kind of place, and the total.
func summary(places []finding) string {
	counts := map[string]int{}
	for _, p := range places {
		counts[p.kind]++
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%5d  %s\n", counts[k.name], k.name)
	}
	for _, name := range []string{longSentence, wideLine} {
		fmt.Fprintf(&b, "%5d  %s\n", counts[name], name)
	}
	fmt.Fprintf(&b, "%5d  in all\n", len(places))
	return b.String()
}
