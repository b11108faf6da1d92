package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// WriteParagraph writes a paragraph of Markdown in lines of at most 100 characters.
func WriteParagraph(b *strings.Builder, text string) { b.WriteString(wrap(text, "") + "\n\n") }

// WriteItem writes an item of a list.
func WriteItem(b *strings.Builder, text string) { b.WriteString("- " + wrap(text, "  ") + "\n") }

// wrap breaks a text into lines of at most 100 characters. All but the first begin with the indent.
func wrap(text, indent string) string {
	const width = 100
	var b strings.Builder
	at := len(indent)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// escapeCell escapes a text for a cell of a table.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// anchor returns the anchor that GitHub gives to a heading.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
