package weirconfig

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// maxFaults is how many faults an error shows.
const maxFaults = 100

// fault is one thing that is wrong with a file.
type fault struct {
	line int
	path string // of the object, "" for the file
	text string
}

func (d *decoder) fault(line int, path, format string, args ...any) {
	d.add(fault{line, path, fmt.Sprintf(format, args...)})
}

func (d *decoder) add(faults ...fault) {
	d.faults = append(d.faults, faults...)
	for _, f := range faults {
		key, _, _ := strings.Cut(f.text, " ")
		d.faulty[f.path], d.faultyKey[join(f.path, key)] = true, true
	}
}

// err returns an error with all faults in the order of their lines, or nil if there are none.
func (d *decoder) err(name string) error {
	slices.SortStableFunc(d.faults, func(a, b fault) int { return a.line - b.line })
	var errs []error
	for i, f := range d.faults {
		if i == maxFaults {
			errs = append(errs, fmt.Errorf("%s: has %d more faults", name, len(d.faults)-i))
			break
		}
		errs = append(errs, fmt.Errorf("%s:%d: %s%s", name, f.line, pathPrefix(f.path), f.text))
	}
	return errors.Join(errs...)
}

func pathPrefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// maxHints bounds the work for the hints of one file, in pairs of bytes that are compared. Faults
// after that have no hint.
const maxHints = 50_000_000

// nearestWord returns the known word that is likely meant by word, or "", also if too much work was
// done for such words already.
func (d *decoder) nearestWord(word string, known ...iter.Seq[string]) string {
	if d.hints < 0 {
		return ""
	}
	var words []string
	for _, some := range known {
		words = slices.AppendSeq(words, some)
	}
	slices.Sort(words)
	for _, k := range words {
		d.hints -= len(word) * len(k)
	}
	return nearestWord(word, words)
}

// nearestWord returns the known word that is likely meant by word, or "".
func nearestWord(word string, known []string) string {
	best, found := min(2, len(word)/3)+1, ""
	for _, k := range known {
		if len(word) > 2*len(k)+2 { // bounds the work
			continue
		}
		if d := editDistance(word, k); d < best {
			best, found = d, k
		}
	}
	return found
}

// editDistance returns the number of bytes that are added, removed or replaced between a and b,
// where two neighbors that are swapped count once (optimal string alignment).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
