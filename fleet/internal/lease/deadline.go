package lease

import (
	"context"
	"time"
)

type deadlineKey struct{}

// Deadline returns the time until which a Take of a [Pool] may ask its Server, from the context
// that the Server received. The context's own deadline may be sooner, because it may be that of the
// caller.
func Deadline(ctx context.Context) (due time.Time, ok bool) {
	due, ok = ctx.Value(deadlineKey{}).(time.Time)
	return due, ok
}
