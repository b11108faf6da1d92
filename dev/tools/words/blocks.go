package main

import (
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// block is a paragraph of a document, a comment, or a message in quotes.
type block struct {
	first int // the number of its first line
	lines []string
}

// splitterFor returns the function that splits a file into blocks, or nil if the file holds no
// text to check.
func splitterFor(name string) func(text string) []block {
	if slices.Contains(strings.Split(path.Dir(name), "/"), "testdata") {
		return nil
	}
	switch path.Ext(name) {
	case ".go":
		return splitGo
	case ".md", ".tmpl":
		return splitMarkdown
	case ".js":
		return splitComments("//", "/*", "*")
	case ".lua":
		return splitComments("--")
	case ".yml", ".yaml", ".sh":
		return splitComments("#")
	}
	if path.Base(name) == "Makefile" || strings.HasPrefix(name, ".ci/") {
		return splitComments("#")
	}
	return nil
}

// splitGo returns the comments and the string literals in double quotes that have at least four
// words. Comment lines that follow each other are one block, but a comment after code is its own.
func splitGo(text string) (blocks []block) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	var comments lineJoiner
	codeLine := 0 // the line of the latest token that is not a comment
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return append(blocks, comments.all()...)
		}
		at := file.Line(pos)
		if tok == token.COMMENT {
			if at == codeLine {
				comments.end()
			}
			for i, line := range strings.Split(literal, "\n") {
				comments.addText(at+i, trimComment(line))
			}
			if at == codeLine {
				comments.end()
			}
			continue
		}
		codeLine = at
		if tok == token.STRING {
			message, err := strconv.Unquote(literal)
			if err == nil && literal[0] == '"' && len(strings.Fields(message)) >= 4 {
				blocks = append(blocks, block{at, []string{message}})
			}
		}
	}
}

// trimComment returns the text of a line of a comment, or "" for a line of code, which begins with
// a tab, and for the output of an example.
func trimComment(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "//\t") || strings.HasPrefix(strings.ToLower(line), "// output:") {
		return ""
	}
	for _, mark := range []string{"//", "/*", "*/", "*"} {
		line = strings.TrimPrefix(line, mark)
	}
	return strings.TrimSpace(strings.TrimSuffix(line, "*/"))
}

// splitMarkdown returns the paragraphs outside code. Each item of a list is a paragraph.
func splitMarkdown(text string) []block {
	var paragraphs lineJoiner
	code := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			code = !code
			continue
		}
		if code {
			continue
		}
		paragraphs.addText(i+1, trimmed)
	}
	return paragraphs.all()
}

// startsItem reports whether a line begins an item of a list, a row of a table or the target of a
// link.
func startsItem(line string) bool {
	for _, mark := range []string{"- ", "|", "["} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	number, _, found := strings.Cut(line, ". ")
	_, err := strconv.Atoi(number)
	return found && err == nil
}

// splitComments returns a function that finds the lines that begin with one of the marks.
func splitComments(marks ...string) func(text string) []block {
	return func(text string) []block {
		var comments lineJoiner
		for i, line := range strings.Split(text, "\n") {
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "#!") { // the interpreter
				continue
			}
			for _, mark := range marks {
				if rest, found := strings.CutPrefix(trimmed, mark); found {
					comments.addText(i+1, strings.TrimSpace(strings.TrimLeft(rest, mark)))
					break
				}
			}
		}
		return comments.all()
	}
}

// lineJoiner joins lines that follow each other into blocks. An empty line ends a block.
type lineJoiner struct {
	done    []block
	current block
}

func (j *lineJoiner) add(number int, line string) {
	if line == "" || number != j.current.first+len(j.current.lines) {
		j.end()
	}
	if line == "" {
		return
	}
	if len(j.current.lines) == 0 {
		j.current.first = number
	}
	j.current.lines = append(j.current.lines, line)
}

// addText is like add, but a line that begins an item begins a block.
func (j *lineJoiner) addText(number int, line string) {
	if startsItem(line) {
		j.end()
	}
	j.add(number, line)
}

func (j *lineJoiner) end() {
	if len(j.current.lines) > 0 {
		j.done = append(j.done, j.current)
	}
	j.current = block{}
}

func (j *lineJoiner) all() []block {
	j.end()
	return j.done
}
