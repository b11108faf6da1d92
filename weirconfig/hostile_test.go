package weirconfig_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirconfig"
)

// allocatedBytes returns how many bytes are allocated while a file is read and refused.
func allocatedBytes(t *testing.T, text string) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := weirconfig.Parse("w.yaml", []byte(text))
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.Less(t, len(err.Error()), 50_000)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHostileFilesTakeBoundedMemory(t *testing.T) {
	const limit = 1 << 20
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		last := "*" + string(c-1) + ","
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat(last, 8) + last[:2] + "]\n"
	}
	for name, text := range map[string]string{
		"10 MB":            strings.Repeat("gates: {}\n", limit),
		"a billion laughs": bomb,
		"brackets":         strings.Repeat("[", limit),
		"braces":           strings.Repeat("{a: ", limit/4),
		"dashes":           strings.Repeat("- ", limit/2),
		"question marks":   strings.Repeat("? ", limit/2),
		"items":            strings.Repeat("- a\n", limit/4),
		"flow items":       "[" + strings.Repeat("a,", limit/2-1) + "]",
		"49,000 items":     "gates: [" + strings.Repeat("a,", 49_000) + "]",
		"24,000 pairs":     "gates: {" + strings.Repeat("?,", 24_000) + "}",
		"comments":         strings.Repeat("gates: 1 # comment\n", 24_000),
		"keys":             "gates:\n" + strings.Repeat(" a: 1\n", 24_000),
		"names":            strings.Repeat("a: {b: c, d: e}\n", 10_000),
		"long key":         strings.Repeat("a", limit-2) + ": 1",
		"long name":        "gates: {" + strings.Repeat("a", limit/2) + ": {" + strings.Repeat("a", limit/3) + ": 1}}",
		"long value":       "gates: {a: {rate: " + strings.Repeat("9", limit-100) + "}}",
		"references":       "gates: {a: {rate: \"" + strings.Repeat("${", limit/2-50) + "\"}}",
		"anchors":          strings.Repeat("- &a a\n", 49_000),
		"indented":         deepFile(1400),
	} {
		require.Less(t, allocatedBytes(t, text), uint64(64<<20), name)
	}
}

// deepFile returns a file with objects that are nested as deep as 1 MB allows.
func deepFile(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
