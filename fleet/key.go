package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxKey is how long a key may be, in bytes, to stand as it is in Redis and in the tables of this process. A longer one is stood
// for by its SHA-256, so none takes more than 3·maxKey bytes in either.
const maxKey = 256

// tag is the part of a Redis key that stands for the user's key. It goes between braces, so that Redis Cluster
// puts all keys with one tag into one slot. It is never empty and has no closing brace, for such braces mean
// nothing to a Cluster; and no two keys have the same.
func tag(key string) string {
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
