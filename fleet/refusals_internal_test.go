package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestTenThousandRefusalsAreRememberedByDefault(t *testing.T) {
	const keys = 100_000
	denied := newDenied(Config{})
	for i := range keys {
		look := denied.Lookup(fmt.Sprint(i), 1)
		look.Remember(limiter.Result{Limit: 1, RetryAfter: time.Hour, ResetAfter: time.Hour})
	}
	remembered := 0
	for i := range keys {
		if denied.Lookup(fmt.Sprint(i), 1).Refused {
			remembered++
		}
	}
	require.LessOrEqual(t, remembered, 10_000)
	require.Greater(t, remembered, 9_900)
}
