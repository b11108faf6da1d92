package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShortLoadKeepsTheLimitsAndLeavesNothing(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var out strings.Builder
		require.NoError(t, config{duration: time.Second, workers: 8, http2: http2}.run(&out), "%s", &out)
	}
}
