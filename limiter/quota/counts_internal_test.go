package quota

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While a write declares fewer tokens as used than the file has, only those count as written: it is
// not known which of the two the file has until the write has ended.
func TestARequestDuringAWriteThatDeclaresLessIsWrittenToo(t *testing.T) {
	now := time.Date(2026, 7, 15, 0, 0, 0, 0, time.UTC)
	c := counts{
		calendar: calendar{every: Day, zone: time.UTC}, limit: 1000, maxKeys: 1,
		keys: map[keyID]*usage{}, dirty: map[keyID]*usage{},
	}
	c.advance(now, true)
	id := idOf("a")
	_, u := c.take(id, now, 500)
	batch, _ := c.collect(false)
	u.durable = batch[0].target // the write has ended
	require.Positive(t, c.refund(id, now, 400))
	batch, _ = c.collect(false) // a write has begun
	require.Equal(t, int64(109), batch[0].target)
	_, u = c.take(id, now, 9)
	require.Nil(t, c.writingOf(id, u).usage)
	_, u = c.take(id, now, 1)
	require.Equal(t, writing{usage: u, used: 110}, c.writingOf(id, u))
}
