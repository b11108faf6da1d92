package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/harm"
)

// read reads the world of a file. Its first lines, which are comments, say how guards were misled.
func read(file string) (f harm.Found, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return f, err
	}
	c, err := config.Read(file, bytes.NewReader(text))
	f.Name = strings.TrimSuffix(filepath.Base(file), ".yaml")
	f.Title, f.World, f.Seed = c.Title, c.World, c.Seed
	var lesson []string
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		lesson = append(lesson, strings.TrimSpace(comment))
	}
	f.Lesson = strings.Join(lesson, " ")
	return f, err
}

// judgeFiles judges the worlds of files.
func (s *settings) judgeFiles(out io.Writer, files []string) error {
	_, err := s.judge(out, files)
	return err
}

func (s *settings) judge(out io.Writer, files []string) (all []harm.Found, err error) {
	var worlds []harm.Found
	for _, file := range files {
		f, err := read(file)
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, f)
	}
	harm.Given(worlds, s.guards, func(f harm.Found) {
		fmt.Fprintf(out, "%s: %s\n", f.Name, harm.Describe(f.World))
		for _, v := range f.Verdicts {
			fmt.Fprintf(out, "  %-18s %s\n", v.Guard.Name, v)
		}
		all = append(all, f)
	})
	return all, nil
}

// judgeKnown judges the worlds of a directory.
func (s *settings) judgeKnown(out io.Writer) ([]harm.Found, error) {
	files, err := filepath.Glob(filepath.Join(s.check, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no worlds", s.check)
	}
	if err != nil {
		return nil, err
	}
	return s.judge(out, files)
}

// checkAll judges the worlds of a directory, and returns an error if they differ from the list.
func (s *settings) checkAll(out io.Writer) error {
	list, err := os.Open(filepath.Join(s.check, "broken.txt"))
	if err != nil {
		return err
	}
	defer list.Close()
	known, err := harm.ReadList(list)
	if err != nil {
		return fmt.Errorf("%s: %w", list.Name(), err)
	}
	all, err := s.judgeKnown(out)
	if err != nil {
		return err
	}
	if differences := harm.Compare(known, all); len(differences) > 0 {
		return errors.New("the list is not right:\n  " + strings.Join(differences, "\n  "))
	}
	fmt.Fprintf(out, "%d worlds, %d broken promises, all known\n", len(all), len(known))
	return nil
}

// writePage writes the part about harm of docs/protection.md.
func (s *settings) writePage(all []harm.Found) error {
	var known []harm.Found
	if s.check != "" {
		var err error
		if known, err = s.judgeKnown(io.Discard); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(s.page)
	if err != nil {
		return err
	}
	rest, _ := harm.SplitPage(string(text))
	return os.WriteFile(s.page, []byte(rest+harm.Page(all, s.seed, known)), 0o600)
}
