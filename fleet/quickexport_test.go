package fleet

import (
	"context"
	"strings"
	"time"
)

// QuickAt is TakeAt by the script of quickBucket, which the limiter must have. It returns false if
// that script cannot decide.
func (l *Limiter) QuickAt(ctx context.Context, at time.Time, key string, n int) (Result, bool, error) {
	b := l.groups[0].backend.(*quickBucket)
	text := quickBucketScript.Text
	for old, timed := range map[string]string{
		"call('TIME')":     "{ ARGV[4], ARGV[5] }",
		"local life = (to": "local life = 3600000 + (to", // keys expire by the clock of the server
	} {
		if strings.Count(text, old) != 1 {
			panic("not once in the script: " + old)
		}
		text = strings.Replace(text, old, timed, 1)
	}
	timed := &script{text: text, sha: "unknown"}
	cost := int64(n) * b.cost
	args := []any{cost, b.burst * b.cost, b.valueSuffix, at.Unix(), at.UnixMicro() % 1_000_000}
	reply, err := l.link.eval(ctx, timed, b.keysOf(newRequestKey(key), b.limits[0]), args)
	if err != nil || reply[1] < 0 {
		return Result{}, false, err
	}
	return Result{Result: b.result(cost, reply[0], reply[1]), From: FromServer}, true, nil
}

// QuickScript returns the text of the script of quickBucket.
func QuickScript() string { return quickBucketScript.Text }

// Quick reports whether the limiter has a quickBucket.
func (l *Limiter) Quick() bool {
	_, quick := l.groups[0].backend.(*quickBucket)
	return quick
}
