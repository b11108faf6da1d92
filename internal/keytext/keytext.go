// Package keytext bounds the bytes that a key of a group takes, whatever its type, and renders it as
// text.
package keytext

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
)

// The bounds of keys.
const (
	MaxKey  = 256  // bytes of a string key, and of any key's text
	MaxText = 1024 // bytes of text in a key of another kind: there is no shorter form of such a key
)

// Size returns how many bytes of text a key refers to, which do not show in the size of
// its type; never more than MaxKey+1 for a string, which can be shortened.
func Size[K comparable](key K) int {
	switch k := any(key).(type) { // the usual kinds, which need no allocation
	case string:
		return min(len(k), MaxKey+1)
	case int, int64, int32, uint64, uint32, uint, bool:
		return 0
	}
	return sizeOfValue(key)
}

// sizeOfValue is Size for all kinds. It stands alone since its argument escapes.
//
//go:noinline
func sizeOfValue[K comparable](key K) int {
	v := reflect.ValueOf(&key).Elem()
	if v.Kind() == reflect.String {
		return min(v.Len(), MaxKey+1)
	}
	return deepText(v)
}

func deepText(v reflect.Value) (n int) {
	switch v.Kind() { //nolint:exhaustive // the others refer to no text
	case reflect.String:
		n = v.Len()
	case reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + deepText(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += deepText(field)
		}
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Array { // numbers refer to nothing
			for i := range v.Len() {
				n += deepText(v.Index(i))
			}
		}
	}
	return n
}

// Bounded returns the key, or its shorter form if it is a string that is longer than MaxKey.
func Bounded[K comparable](key K) K {
	if Size(key) > MaxKey {
		key = Own(key)
	}
	return key
}

// Own returns the key as a group keeps it. A string becomes a copy, since it may be
// part of a larger text that would stay in memory with it; of one that is longer than
// MaxKey the digest stands for the end.
//
//go:noinline
func Own[K comparable](key K) K {
	if v := reflect.ValueOf(&key).Elem(); v.Kind() == reflect.String {
		v.SetString(ownText(v.String()))
	}
	return key
}

func ownText(s string) string {
	if len(s) <= MaxKey {
		return strings.Clone(s)
	}
	digest := sha256.Sum256([]byte(s))
	end := "#" + hex.EncodeToString(digest[:])
	return s[:MaxKey-len(end)] + end
}

// Label returns the key as text, of which the first MaxKey bytes count.
func Label[K comparable](key K) string {
	s := strings.ToValidUTF8(fmt.Sprint(key), "\uFFFD")
	if len(s) > MaxKey {
		s = strings.Clone(strings.ToValidUTF8(s[:MaxKey], ""))
	}
	return s
}
