package harm

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Known is a promise that a guard is known to break in a world, and why.
type Known struct{ World, Guard, Promise, Cause string }

// ReadList reads the promises that are known to be broken: a line for each, with fields separated
// by tabs. Lines that begin with # are comments.
func ReadList(r io.Reader) (all []Known, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "#") || lines.Text() == "" {
			continue
		}
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 4 || slices.Contains(fields, "") {
			return nil, fmt.Errorf("line %d must have a world, a guard, a promise and a cause, separated by tabs", n)
		}
		all = append(all, Known{fields[0], fields[1], fields[2], fields[3]})
	}
	return all, lines.Err()
}

// Compare compares what guards break with what is known, and returns each difference in words.
func Compare(known []Known, found []Found) (differences []string) {
	left := slices.Clone(known)
	for _, f := range found {
		for _, v := range f.Verdicts {
			for _, promise := range v.Broken() {
				n := len(left)
				left = slices.DeleteFunc(left, func(k Known) bool {
					return k.World == f.Name && k.Guard == v.Guard.Name && k.Promise == promise
				})
				if len(left) == n {
					differences = append(differences, fmt.Sprintf("%s: %s breaks a promise that it kept: %s: %s",
						f.Name, v.Guard.Name, promise, v))
				}
			}
		}
	}
	for _, k := range left {
		differences = append(differences, fmt.Sprintf("%s: %s no longer breaks its promise (%s): remove it from the list",
			k.World, k.Guard, k.Promise))
	}
	return differences
}
