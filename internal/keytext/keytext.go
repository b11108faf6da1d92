// Package keytext bounds the memory that a key of a group takes, whatever its type, and renders it
// as text.
package keytext

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
)

// The bounds of keys, in bytes.
const (
	MaxKey  = 256  // of a string key, and of any key's label
	MaxText = 1024 // of the text in a key of a different type, which cannot be shortened
)

// Size returns how many bytes of text a key refers to, which are not part of its own size. For a
// string, which can be shortened, it is at most MaxKey+1.
func Size[K comparable](key K) int {
	switch k := any(key).(type) { // the usual types, without an allocation
	case string:
		return min(len(k), MaxKey+1)
	case int, int64, int32, uint64, uint32, uint, bool:
		return 0
	}
	return sizeByReflection(key)
}

// sizeByReflection is Size for all types. It is not inlined, because its argument escapes.
//
//go:noinline
func sizeByReflection[K comparable](key K) int {
	v := reflect.ValueOf(&key).Elem()
	if v.Kind() == reflect.String {
		return min(v.Len(), MaxKey+1)
	}
	return textBytes(v)
}

// textBytes returns the bytes of text that a value, its fields and its elements refer to.
func textBytes(v reflect.Value) (n int) {
	switch v.Kind() { //nolint:exhaustive // the other kinds refer to no text
	case reflect.String:
		n = v.Len()
	case reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + textBytes(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += textBytes(field)
		}
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Array { // numbers refer to nothing
			for i := range v.Len() {
				n += textBytes(v.Index(i))
			}
		}
	}
	return n
}

// Bounded returns the key, or its short form if it is a string of more than MaxKey bytes.
func Bounded[K comparable](key K) K {
	if Size(key) > MaxKey {
		key = Own(key)
	}
	return key
}

// Own returns the key as a group keeps it. A string is copied, because it may be part of a larger
// one that would stay in memory with it. A string of more than MaxKey bytes is cut to MaxKey and
// ends with a hash of the whole.
//
//go:noinline
func Own[K comparable](key K) K {
	if v := reflect.ValueOf(&key).Elem(); v.Kind() == reflect.String {
		v.SetString(boundText(v.String()))
	}
	return key
}

// seeds are drawn for each process, so clients cannot choose texts with the same hashes. A
// cryptographic hash would be linked into every program with a breaker.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func boundText(s string) string {
	if len(s) <= MaxKey {
		return strings.Clone(s)
	}
	end := fmt.Sprintf("#%016x%016x", maphash.String(seeds[0], s), maphash.String(seeds[1], s))
	return s[:MaxKey-len(end)] + end
}

// Label returns the key as valid UTF-8, cut to MaxKey bytes.
func Label[K comparable](key K) string {
	s := strings.ToValidUTF8(fmt.Sprint(key), "\uFFFD")
	if len(s) > MaxKey {
		s = strings.Clone(strings.ToValidUTF8(s[:MaxKey], ""))
	}
	return s
}
