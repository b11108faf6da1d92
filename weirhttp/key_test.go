package weirhttp_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirhttp"
)

func TestKeyOfMoreThan64BytesIsHashed(t *testing.T) {
	key := weirhttp.ByHeader("X-Api-Key")
	for size, kept := range map[int]bool{0: true, 1: true, 64: true, 65: false, 10_000: false} {
		value := strings.Repeat("k", size)
		want := sha256.Sum256([]byte(value))
		got := key(&http.Request{Header: http.Header{"X-Api-Key": {value}}})
		require.Equal(t, kept, got == value, "%d bytes", size)
		require.Equal(t, !kept, got == string(want[:]), "%d bytes", size)
	}
}
