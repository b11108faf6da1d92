// Package sentinel has the error that every refusal of the library matches. Users know it as
// weir.ErrRefused; it stands here because breaker and limiter must not import the root package.
package sentinel

import "errors"

// ErrRefused is matched, through [errors.Is], by every error with which a breaker, a limiter or a gate
// refuses a call.
var ErrRefused = errors.New("weir: refused")

// RefusalError is an error that one kind of refusal matches, such as those of a breaker. It matches
// ErrRefused itself.
type RefusalError string

func (e RefusalError) Error() string { return string(e) }

// Is reports whether the target is ErrRefused.
func (e RefusalError) Is(target error) bool { return target == ErrRefused }
