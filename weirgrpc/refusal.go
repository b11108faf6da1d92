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
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
)

// RefusedError is the error of a call that was not made, or not served.
//
// It is a gRPC status: Unavailable if a breaker is open or a throttle refuses the call,
// ResourceExhausted if a limit is reached or the service has asked to wait, DeadlineExceeded if the
// deadline is too near (see weir.HopelessError). It has an ErrorInfo, and a RetryInfo if the wait
// is known. In this process it also matches what Err matches: weir.ErrRefused, and breaker.ErrOpen,
// limiter.ErrLimited or inflight.ErrFull. A client of a server gets only the status.
type RefusedError struct {
	// Method is the full name of the method.
	Method string
	// Err is the error of the breaker, limiter or throttle, such as a *breaker.OpenError.
	Err error
}

func (e *RefusedError) Error() string { return "weirgrpc: " + e.Method + " refused: " + e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// GRPCStatus returns the status that clients get. Its RetryInfo counts from now.
func (e *RefusedError) GRPCStatus() *status.Status {
	why, name, _ := e.cause()
	s := &spb.Status{Code: int32(codes.ResourceExhausted), Message: fmt.Sprintf("refused by limiter %q", name)}
	info := &errdetails.ErrorInfo{Domain: errorDomain, Reason: "LIMITED", Metadata: map[string]string{"name": name}}
	switch why {
	case open:
		s.Code, s.Message = int32(codes.Unavailable), fmt.Sprintf("refused by breaker %q", name)
		info.Reason = "BREAKER_OPEN"
	case held:
		s.Message, info.Reason = fmt.Sprintf("%q: the service asked to wait", name), "HELD"
	case throttled:
		s.Code, s.Message, info.Reason = int32(codes.Unavailable), "refused by a throttle", "THROTTLED"
	case hopeless:
		s.Code, s.Message, info.Reason = int32(codes.DeadlineExceeded), fmt.Sprintf("%q: the deadline is too near", name), "HOPELESS"
	case retries:
		s.Message, info.Reason = fmt.Sprintf("%q: too many retries", name), "RETRIES"
	case limited:
	}
	s.Details = []*anypb.Any{packMessage(info)}
	if wait, known := e.wait(); known {
		s.Message += ", retry in " + wait.String()
		s.Details = append(s.Details, packMessage(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}))
	}
	return status.FromProto(s)
}

// errorDomain is the domain of the ErrorInfo of a refusal.
const errorDomain = "github.com/weir-go/weir"

// reason names the part that refused a call, as it appears in logs and spans.
type reason string

const (
	open      reason = "open"    // a breaker
	limited   reason = "limited" // a limiter
	held      reason = "held"    // a hold: see weir.Gate.Hold
	throttled reason = "throttled"
	hopeless  reason = "hopeless" // a deadline that is too near: see weir.HopelessError
	retries   reason = "retries"  // a retry budget: see weir.RetryError
)

// cause returns what refused the call, its name, and the key of its group if that is known.
func (e *RefusedError) cause() (why reason, name, key string) {
	if by, ok := errors.AsType[*breaker.OpenError](e.Err); ok {
		return open, by.Name, by.Key
	}
	if by, ok := errors.AsType[*weir.HopelessError](e.Err); ok {
		return hopeless, by.Name, ""
	}
	if by, ok := errors.AsType[*weir.RetryError](e.Err); ok {
		return retries, by.Name, ""
	}
	if by, ok := errors.AsType[*inflight.FullError](e.Err); ok {
		return limited, by.Name, ""
	}
	by, ok := errors.AsType[*limiter.LimitedError](e.Err)
	switch {
	case errors.Is(e.Err, throttle.ErrRefused):
		return throttled, "", ""
	case !ok:
		return limited, "", ""
	case by.Reason == limiter.Held:
		return held, by.Name, ""
	}
	return limited, by.Name, ""
}

// wait returns how long to wait, rounded up to whole milliseconds, and whether that is known.
func (e *RefusedError) wait() (d time.Duration, known bool) {
	if full, ok := errors.AsType[*inflight.FullError](e.Err); ok && full.Until.IsZero() {
		return 0, false
	}
	d = weir.RetryAfter(e.Err)
	if d <= 0 || d > limiter.Never-time.Millisecond {
		return 0, false
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond), true
}

// pushback returns the value of grpc-retry-pushback-ms as gRFC A6 defines it: an int32 of
// milliseconds, negative if the call must not be retried. It returns false if the wait is not
// known.
func (e *RefusedError) pushback() (ms int64, ok bool) {
	if weir.RetryAfter(e.Err) == limiter.Never {
		return -1, true
	}
	wait, known := e.wait()
	return min(wait.Milliseconds(), math.MaxInt32), known
}

// packMessage returns a message of this file as an Any, which cannot fail.
func packMessage(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// retryAfter returns the wait of a refusal (see weir.RetryAfter) or of the RetryInfo that a server
// sent, or 0 if there is neither.
func retryAfter(err error) time.Duration {
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
