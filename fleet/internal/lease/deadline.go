package lease

import (
	"context"
	"time"
)

type deadlineKey struct{}

// Due is when the time is up that a Take has for all that it asks of its Server, given the context that the Server got. It is not the
// context's deadline, which may be the caller's own and sooner.
func Deadline(ctx context.Context) (due time.Time, ok bool) {
	due, ok = ctx.Value(deadlineKey{}).(time.Time)
	return due, ok
}
