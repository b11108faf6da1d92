package weirgrpc

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Reason is what refused a call.
type Reason string

// The reasons, as they stand in logs and spans.
const (
	Open    Reason = "open"    // a breaker
	Limited Reason = "limited" // a limiter
	Held    Reason = "held"    // a hold: see weir.Gate.Hold
)

// ErrorDomain is the domain of the ErrorInfo that a refusal has among its details. Its
// reason is BREAKER_OPEN, LIMITED or HELD, and its metadata has the name of what refused.
const ErrorDomain = "github.com/weir-go/weir"

// RefusedError is a refusal: the call was not made, or not served.
//
// It is a status of gRPC: Unavailable where a breaker is open, ResourceExhausted where a
// limit is reached or the service has asked to wait; with an ErrorInfo, and a RetryInfo where
// it is known when to come back. In this process it also matches what its Err matches: weir.ErrRefused, and
// breaker.ErrOpen or limiter.ErrLimited. What arrives at a client is the status alone.
type RefusedError struct {
	Method string // of the call, in full
	Reason Reason // why it was refused
	Name   string // of the breaker or limiter
	Key    string // of the gate of a Group, where it is known; not sent to clients
	Err    error  // a *breaker.OpenError or a *limiter.LimitedError
}

func newRefusedError(method string, err error) *RefusedError {
	e := &RefusedError{Method: method, Reason: Limited, Err: err}
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		e.Reason, e.Name, e.Key = Open, open.Name, open.Key
	} else if limited, ok := errors.AsType[*limiter.LimitedError](err); ok {
		e.Name = limited.Name
		if limited.Reason == limiter.Held {
			e.Reason = Held
		}
	}
	return e
}

func (e *RefusedError) Error() string { return "weirgrpc: " + e.Method + " refused: " + e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// GRPCStatus returns the refusal as clients get it. Its RetryInfo counts from now.
func (e *RefusedError) GRPCStatus() *status.Status {
	s := &spb.Status{Code: int32(codes.ResourceExhausted), Message: fmt.Sprintf("refused by limiter %q", e.Name)}
	info := &errdetails.ErrorInfo{Domain: ErrorDomain, Reason: "LIMITED", Metadata: map[string]string{"name": e.Name}}
	switch e.Reason {
	case Open:
		s.Code, s.Message = int32(codes.Unavailable), fmt.Sprintf("refused by breaker %q", e.Name)
		info.Reason = "BREAKER_OPEN"
	case Held:
		s.Message, info.Reason = fmt.Sprintf("%q: the service asked to wait", e.Name), "HELD"
	case Limited:
	}
	s.Details = []*anypb.Any{wrapped(info)}
	if wait, known := e.wait(); known {
		s.Message += ", retry in " + wait.String()
		s.Details = append(s.Details, wrapped(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}))
	}
	return status.FromProto(s)
}

// wait returns how long to wait, in whole milliseconds and never too short, and whether that is known.
func (e *RefusedError) wait() (d time.Duration, known bool) {
	d = weir.RetryAfter(e.Err)
	if d <= 0 || d > limiter.Never-time.Millisecond {
		return 0, false
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond), true
}

// pushback returns the value of grpc-retry-pushback-ms as gRFC A6 defines it: an int32 of milliseconds,
// negative if the call must not be retried. It returns false if the wait is not known.
func (e *RefusedError) pushback() (ms int64, ok bool) {
	if weir.RetryAfter(e.Err) == limiter.Never {
		return -1, true
	}
	wait, known := e.wait()
	return min(wait.Milliseconds(), math.MaxInt32), known
}

// wrapped packs a message. Those of this file always can be.
func wrapped(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return packed
}

// RetryAfter returns how long to wait before the call may be tried again: as a refusal
// of weir says (see weir.RetryAfter), or the RetryInfo that a server sent. It is 0 where
// nobody says.
func RetryAfter(err error) time.Duration {
	if d := weir.RetryAfter(err); d != 0 {
		return d
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}
