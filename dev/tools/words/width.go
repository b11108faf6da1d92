package main

import (
	"go/scanner"
	"go/token"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	wideLine = "text beyond column 100: wrap it"

	// maxColumns is the highest number of columns of a line with text. A tab has four.
	maxColumns = 100
)

// tooWide finds the lines of a document, and the lines with a comment of a Go file, that have too
// many columns. Lines that cannot be wrapped do not count: code, tables, links, and the output of
// an example.
func tooWide(name, text string) (places []finding) {
	lines := strings.Split(text, "\n")
	var canWrap []bool
	switch path.Ext(name) {
	case ".go":
		canWrap = commentLines(text, len(lines))
	case ".md", ".tmpl":
		canWrap = proseLines(lines)
	default:
		return nil
	}
	for i, line := range lines {
		columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
		if canWrap[i] && columns > maxColumns && !strings.Contains(line, "://") {
			places = append(places, finding{name, i + 1, wideLine, strings.TrimSpace(line)})
		}
	}
	return places
}

// commentLines reports which of the n lines of a Go file have a comment that can be wrapped.
func commentLines(text string, n int) []bool {
	canWrap := make([]bool, n)
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	output := false // the line before belongs to the output of an example
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return canWrap
		case tok != token.COMMENT:
			output = false
		default:
			start := strings.ToLower(literal)
			output = output || strings.HasPrefix(start, "// output:") || strings.HasPrefix(start, "// unordered output:")
			canWrap[file.Line(pos)-1] = strings.HasPrefix(literal, "// ") && !output
		}
	}
}

// proseLines reports which lines of a document can be wrapped.
func proseLines(lines []string) []bool {
	canWrap := make([]bool, len(lines))
	code := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		canWrap[i] = !code && (line == "" || !strings.ContainsAny(line[:1], "|<[!{")) && !strings.HasPrefix(line, "    ")
	}
	return canWrap
}
