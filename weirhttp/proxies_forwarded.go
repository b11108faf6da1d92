package weirhttp

import "strings"

// cutLastHop returns the last element of a list and the rest of the list. It reads quoted strings
// from the right, so that text to the left of the element, such as an unmatched quotation mark,
// does not change where the element begins.
func cutLastHop(list string) (hop, rest string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !escaped(list, i):
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return strings.Trim(list[i+1:], " \t"), list[:i], true
		}
	}
	return strings.Trim(list, " \t"), "", false
}

// escaped reports whether the character at i follows an odd number of backslashes.
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the parameter "for" of an element of a Forwarded header. There must be
// exactly one.
func forwardedFor(element string) (node string, ok bool) {
	for element != "" {
		var pair string
		pair, element = cutPair(element)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "for") {
			continue
		}
		if ok {
			return "", false
		}
		if node, ok = unquote(strings.Trim(value, " \t")); !ok {
			return "", false
		}
	}
	return node, ok
}

// cutPair returns the first parameter of an element and the rest of the element.
func cutPair(element string) (pair, rest string) {
	quoted := false
	for i := range len(element) {
		switch {
		case element[i] == '"' && !escaped(element, i):
			quoted = !quoted
		case element[i] == ';' && !quoted:
			return element[:i], element[i+1:]
		}
	}
	return element, ""
}

// unquote returns a value without its quotation marks, which must be on both sides or on none.
// Escapes are not resolved, because addresses have none.
func unquote(value string) (string, bool) {
	inner, opened := strings.CutPrefix(value, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	return inner, opened == closed && !strings.Contains(inner, `"`)
}
