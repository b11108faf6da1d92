// Command lastline passes its standard input on and then judges the last line: it must be a
// JSON object in which every field is a number above zero, and the fields named as arguments
// must be among them.
//
//	program | lastline calls failed
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

func main() {
	var last string
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		last = lines.Text()
		fmt.Println(last)
	}
	if err := errors.Join(lines.Err(), checkLastLine(last, os.Args[1:])); err != nil {
		fmt.Fprintln(os.Stderr, "lastline:", err)
		os.Exit(1)
	}
}

func checkLastLine(line string, names []string) error {
	var fields map[string]float64
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return fmt.Errorf("%q is not an object of numbers: %w", line, err)
	}
	var faults []error
	for _, name := range names {
		if _, found := fields[name]; !found {
			faults = append(faults, fmt.Errorf("%s is missing", name))
		}
	}
	for name, value := range fields {
		if !(value > 0) {
			faults = append(faults, fmt.Errorf("%s is %g, must be above 0", name, value))
		}
	}
	return errors.Join(faults...)
}
