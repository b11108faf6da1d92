package weirhttp

import "strings"

// parseItems parses a List of Items, a structured field of RFC 9651, and returns the parameters of
// each item, and the item itself as the parameter "". It returns false if the field is malformed
// anywhere, as the RFC demands.
func parseItems(field string) (items []map[string]string, ok bool) {
	s := scanner(strings.Trim(field, " "))
	for s != "" {
		params, ok := s.item()
		if !ok {
			return nil, false
		}
		items = append(items, params)
		s.skip(" \t")
		if s == "" {
			break
		}
		if !s.skipByte(',') {
			return nil, false
		}
		if s.skip(" \t"); s == "" {
			return nil, false
		}
	}
	return items, true
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	number = "0123456789"
	alnum  = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + number

	keyBytes    = lower + number + "_-.*"
	tokenBytes  = alnum + "!#$%&'*+-.^_`|~:/"
	base64Bytes = alnum + "+/="
)

// scanner is the rest of a field that is not parsed yet.
type scanner string

// item parses an item and returns its parameters.
func (s *scanner) item() (params map[string]string, ok bool) {
	bare, ok := s.value()
	if !ok {
		return nil, false
	}
	params = map[string]string{"": bare}
	for s.skipByte(';') {
		s.skip(" ")
		key, value := s.skip(keyBytes), ""
		if key == "" || strings.IndexByte(lower+"*", key[0]) < 0 {
			return nil, false
		}
		if s.skipByte('=') {
			if value, ok = s.value(); !ok {
				return nil, false
			}
		}
		params[key] = value
	}
	return params, true
}

// value parses a bare item: a string, bytes, a boolean, a number, or a token.
func (s *scanner) value() (string, bool) {
	switch {
	case s.skipByte('"'):
		return s.quoted()
	case s.skipByte(':'):
		bytes := s.skip(base64Bytes)
		return bytes, s.skipByte(':')
	case s.skipByte('?'):
		bit := s.skip("01")
		return bit, len(bit) == 1
	case *s == "":
		return "", false
	case strings.IndexByte(number+"-", (*s)[0]) >= 0:
		return s.number()
	}
	token := s.skip(tokenBytes)
	return token, token != "" && strings.IndexByte(alnum+"*", token[0]) >= 0
}

// quoted parses a string after its opening quote.
func (s *scanner) quoted() (string, bool) {
	for i := 0; i < len(*s); i++ {
		switch c := (*s)[i]; {
		case c == '"':
			text := string((*s)[:i])
			*s = (*s)[i+1:]
			return text, true
		case c == '\\' && i+1 < len(*s) && ((*s)[i+1] == '"' || (*s)[i+1] == '\\'):
			i++
		case c == '\\' || c < ' ' || c > '~':
			return "", false
		}
	}
	return "", false
}

// number parses an integer of at most 15 digits, or a decimal.
func (s *scanner) number() (string, bool) {
	all := string(*s)
	s.skipByte('-')
	whole, ok := s.skip(number), true
	if s.skipByte('.') {
		tenths := s.skip(number)
		ok = len(whole) <= 12 && 1 <= len(tenths) && len(tenths) <= 3
	}
	return all[:len(all)-len(*s)], ok && 1 <= len(whole) && len(whole) <= 15
}

// skipByte skips c, and reports whether it was there.
func (s *scanner) skipByte(c byte) bool {
	if *s == "" || (*s)[0] != c {
		return false
	}
	*s = (*s)[1:]
	return true
}

// skip skips and returns the bytes up to the first that is not in set.
func (s *scanner) skip(set string) string {
	rest := strings.TrimLeft(string(*s), set)
	skipped := string((*s)[:len(*s)-len(rest)])
	*s = scanner(rest)
	return skipped
}
