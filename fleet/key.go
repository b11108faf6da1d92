package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxKey is the length in bytes up to which a key is used unchanged in Redis and in the tables of
// this process. A longer key is replaced by its SHA-256, so no key takes more than 3·maxKey bytes.
const maxKey = 256

// keyTag returns the text that stands for a key between the braces of a Redis key. A Cluster puts
// all Redis keys with the same tag into one slot. A tag is never empty and contains no closing
// brace, because a Cluster ignores such braces. Different keys have different tags.
func keyTag(key string) string {
	switch {
	case len(key) > maxKey:
		sum := sha256.Sum256([]byte(key))
		return "%sha256:" + hex.EncodeToString(sum[:])
	case key == "":
		return "%"
	case strings.ContainsAny(key, "%}"):
		return tagEscape.Replace(key)
	}
	return key
}

var tagEscape = strings.NewReplacer("%", "%25", "}", "%7D")
