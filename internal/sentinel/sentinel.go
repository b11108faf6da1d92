// Package sentinel has the error that every refusal of the library matches. Users know it as
// weir.ErrRefused. It is here because breaker and limiter must not import the root package.
package sentinel

// ErrRefused matches, by [errors.Is], every error with which a breaker, a limiter or a gate refuses
// a call.
var ErrRefused error = RefusalError("weir: refused")

// RefusalError is the type of ErrRefused and of the errors that match the refusals of one package,
// such as breaker.ErrOpen. Each of them matches ErrRefused too.
type RefusalError string

func (e RefusalError) Error() string { return string(e) }

// Is reports whether the target is ErrRefused.
func (e RefusalError) Is(target error) bool { return target == ErrRefused }
