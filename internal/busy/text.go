package busy

import (
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"strings"
	"unicode/utf8"
)

// maxText is the maximum number of bytes of a key that are shown.
const maxText = 64

// textOf returns the text of a key, cut to maxText bytes and an ellipsis. A text that is not valid
// UTF-8, such as a hash, is written in hexadecimal. The result is never empty.
func textOf[K comparable](key K) string {
	s, ok := any(key).(string)
	if !ok {
		s = fmt.Sprint(key)
	}
	if s == "" {
		return "(empty)"
	}
	end := min(len(s), maxText)
	for end < len(s) && end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	text := s[:end]
	if !utf8.ValidString(text) {
		end = min(len(s), maxText/2)
		text = hex.EncodeToString([]byte(s[:end]))
	}
	if end < len(s) {
		return text + "…"
	}
	return strings.Clone(text) // it may be part of a longer string
}

// nameKey is the key of the hashes that are shown. It is drawn for each process. So hashing all
// possible addresses does not tell which of them belongs to a shown hash.
var nameKey = maphash.MakeSeed()

// nameOf returns the text for a key that is not shown: 48 bits of a keyed hash of its hash.
func nameOf(hash uint64) string {
	return fmt.Sprintf("#%012x", maphash.Comparable(nameKey, hash)>>16)
}
