package breaker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// The most bytes of the texts of a FailedCall.
const (
	maxKind = 100
	maxText = 200
)

// The kinds of failures without an error, and of errors without a type of their own.
const (
	kindPanic    = "panic"
	kindResult   = "result"
	kindRecorded = "recorded"
	kindError    = "error"
)

// failure holds the texts of a FailedCall. Its strings are cut to their greatest length, but may
// still be parts of longer strings in memory.
type failure struct{ kind, message, note string }

// recordedFailure is a failure of which only the outcome is known. It never changes.
var recordedFailure = failure{kind: kindRecorded}

// isKept reports whether describe was called for f. It also returns true if f is nil, because then
// only the outcome is known.
func (f *failure) isKept() bool { return f == nil || f.kind != "" }

// describe fills in f for a failed call that returned err. If err is nil, the failure is of the
// given kind. It calls functions of the user, so no lock is held.
func (f *failure) describe(ctx context.Context, err error, kind string, c *Config) {
	if c.KeepFailures == 0 {
		return
	}
	if f.kind = kind; err != nil {
		f.readError(err)
	}
	if c.DescribeFailure != nil {
		f.applyUserChange(ctx, err, c.DescribeFailure)
	}
}

// readError takes the kind and the message of an error, whose methods may panic.
func (f *failure) readError(err error) {
	f.kind = kindError
	defer func() {
		if recover() != nil {
			f.message = "the error panicked"
		}
	}()
	f.kind = truncateText(kindOf(err), maxKind)
	f.message = truncateText(err.Error(), maxText)
}

// wrappers are the types of the errors that packages fmt and errors make.
var wrappers = []reflect.Type{
	reflect.TypeOf(errors.New("")), reflect.TypeOf(fmt.Errorf("%w", errors.ErrUnsupported)),
	reflect.TypeOf(fmt.Errorf("%w%w", errors.ErrUnsupported, errors.ErrUnsupported)), reflect.TypeOf(errors.Join(errors.ErrUnsupported)),
}

// kindOf returns the type of the first error in the tree of err that is not one of wrappers, or
// kindError if there is none.
func kindOf(err error) string {
	for err != nil {
		t := reflect.TypeOf(err)
		if !slices.Contains(wrappers, t) {
			return t.String()
		}
		switch e := err.(type) { //nolint:errorlint // this is what unwraps
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			if len(all) == 0 { // as of fmt.Errorf("%w %w", nil, nil)
				return kindError
			}
			err = all[0]
		default:
			return kindError
		}
	}
	return kindError
}

// applyUserChange calls a function of the user that may change f. If it panics, f is left without
// texts.
func (f *failure) applyUserChange(ctx context.Context, err error, describe func(context.Context, error, *FailedCall)) {
	kind := f.kind
	call := FailedCall{Kind: kind, Message: strings.Clone(f.message)}
	*f = failure{kind: kind}
	defer func() { _ = recover() }() // the panic would reach a caller that did not cause it
	describe(ctx, err, &call)
	*f = failure{truncateText(call.Kind, maxKind), truncateText(call.Message, maxText), truncateText(call.Note, maxText)}
}

// truncateText returns at most the first n bytes of s, without splitting a character, as UTF-8.
func truncateText(s string, n int) string {
	s = firstBytes(s, n)
	if utf8.ValidString(s) {
		return s
	}
	return firstBytes(strings.ToValidUTF8(s, "\uFFFD"), n)
}

// firstBytes returns at most the first n bytes of s, without splitting a character.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}
