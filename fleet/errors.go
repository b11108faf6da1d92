package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable is matched, through [errors.Is], by errors that mean that Redis gave no answer: it
// cannot be reached, is too slow, or is in no state to decide. The limiter's policy decides then:
// see [OnOutage].
var ErrUnavailable = errors.New("fleet: redis is unavailable")

// ErrForeign is matched by errors that mean that a Redis key holds a value that no limit of its
// kind can have written. The value is not changed. No policy applies, because waiting does not
// help: choose another [LinkConfig].Prefix or name, or delete the key. If a limit of another kind
// has written the value, the text of the error names both kinds.
var ErrForeign = errors.New("fleet: the key holds a foreign value")

// ErrServer is matched by errors that mean that the server cannot be used as it is, and that
// waiting does not help. The server is older than Redis 6, refuses the credentials or a command
// that is needed, has a certificate that is not accepted, or belongs to a Cluster although the
// client is not a cluster client.
var ErrServer = errors.New("fleet: the server cannot be used")

// Values of StoreError.Fault. Those up to faultOther match ErrUnavailable.
const (
	faultTimeout     = "timeout"
	faultConnection  = "connection"
	faultBreakerOpen = "breaker"
	faultLoading     = "loading"     // reads its data from disk
	faultReadOnly    = "readonly"    // is a replica
	faultMasterDown  = "masterdown"  // is a replica that has lost its master
	faultClusterDown = "clusterdown" // the Cluster does not serve the slot, or is moving it
	faultMoved       = "moved"       // the slot is elsewhere; matches ErrServer if INFO says so
	faultOutOfMemory = "oom"
	faultBusy        = "busy"   // runs another script, has too many clients, or lacks replicas
	faultOther       = "server" // any other error of the server

	faultForeign = "foreign" // matches ErrForeign
	faultTooOld  = "version" // matches ErrServer
	faultDenied  = "auth"    // matches ErrServer during Connect, and ErrUnavailable later
	faultNoTLS   = "tls"     // likewise
)

// faults are all values of StoreError.Fault, for the metrics.
var faults = []string{
	faultTimeout, faultConnection, faultBreakerOpen, faultLoading, faultReadOnly, faultMasterDown, faultClusterDown, faultMoved,
	faultOutOfMemory, faultBusy, faultOther, faultForeign, faultTooOld, faultDenied, faultNoTLS,
}

// StoreError says why Redis did not decide. It matches ErrUnavailable, ErrForeign or ErrServer,
// depending on its Fault, and context.DeadlineExceeded if the Fault is timeout. It is not a refusal
// and does not match weir.ErrRefused.
//
// Its text contains no addresses, no credentials and no output of scripts. The wrapped error comes
// from the client library and may contain them.
type StoreError struct {
	// Fault is the kind of error, as in the metric weir.limiter.backend.errors.
	//
	// These match ErrUnavailable: timeout (Redis may have decided nevertheless), connection,
	// breaker (Redis was not asked, because it has failed too often), loading, readonly,
	// masterdown, clusterdown, moved, oom, busy and server. moved matches ErrServer instead if the
	// server says that it belongs to a Cluster.
	//
	// foreign matches ErrForeign. version, auth and tls match ErrServer, but auth and tls match
	// ErrUnavailable if they occur after Connect.
	Fault string

	link  string    // name of the link
	kinds [2]string // for faultForeign: the limit of the writer, and of the reader
	until time.Time // for faultBreakerOpen: when Redis is asked again, if known
	cause error     // from the client library or the breaker, or nil
	final bool      // found by Connect, or when the server was first asked about itself
}

// Error returns the name of the link and a description of the fault.
func (e *StoreError) Error() string {
	text := faultText[e.Fault]
	if e.kinds[0] != "" {
		text = "the key was written by a limit of kind " + e.kinds[0] + ", and this one is a " + e.kinds[1] +
			": give the limiter another name, or reset the key"
	}
	return "fleet: redis " + e.link + ": " + text
}

var faultText = map[string]string{
	faultTimeout:     "no answer in time",
	faultConnection:  "no connection",
	faultBreakerOpen: "not asked after too many failures",
	faultLoading:     "loading its data",
	faultReadOnly:    "read-only",
	faultMasterDown:  "its master is down",
	faultClusterDown: "its cluster is down",
	faultMoved:       "part of a cluster, and the client is not a cluster client",
	faultOutOfMemory: "out of memory",
	faultBusy:        "busy",
	faultOther:       "server error",
	faultForeign:     "the key holds a foreign value: choose another prefix or name, or delete the key",
	faultTooOld:      "older than version 6",
	faultDenied:      "access denied",
	faultNoTLS:       "no TLS with an accepted certificate",
}

// Unwrap returns the error of the client library, or nil. It does not return the error of a
// breaker, because that is a refusal.
func (e *StoreError) Unwrap() error {
	if e.Fault == faultBreakerOpen {
		return nil
	}
	return e.cause
}

// Is reports whether the error matches target: see StoreError.
func (e *StoreError) Is(target error) bool {
	switch target {
	case ErrUnavailable, ErrForeign, ErrServer:
		return target == e.sentinel()
	case context.DeadlineExceeded:
		return e.Fault == faultTimeout
	}
	return false
}

// RetryAfter returns how long to wait until the next request goes to Redis, or 0 if that is not
// known.
func (e *StoreError) RetryAfter() time.Duration {
	if e.until.IsZero() {
		return 0
	}
	return max(time.Until(e.until), 0)
}

func (e *StoreError) sentinel() error {
	switch {
	case e.Fault == faultForeign:
		return ErrForeign
	case e.Fault == faultTooOld, e.final && (e.Fault == faultDenied || e.Fault == faultNoTLS || e.Fault == faultMoved):
		return ErrServer
	}
	return ErrUnavailable
}

// replyFaults maps the beginnings of error replies to faults.
var replyFaults = []struct{ prefix, fault string }{
	{"WRONGTYPE", faultForeign},
	{"LOADING", faultLoading},
	{"READONLY", faultReadOnly},
	{"MASTERDOWN", faultMasterDown},
	{"CLUSTERDOWN", faultClusterDown},
	{"TRYAGAIN", faultClusterDown},
	{"MOVED", faultMoved},
	{"ASK", faultMoved},
	{"OOM", faultOutOfMemory},
	{"BUSY", faultBusy},
	{"NOREPLICAS", faultBusy},
	{"MISCONF", faultBusy},
	{"max number of clients", faultBusy},
	{"NOAUTH", faultDenied},
	{"WRONGPASS", faultDenied},
	{"NOPERM", faultDenied},
	{"The user executing the script can't", faultDenied},
	{"ACL failure in script", faultDenied}, // Redis 7.2 and Valkey
	{"AUTH ", faultDenied},
	{"invalid password", faultDenied},
	{"Client sent AUTH", faultDenied},
}

// faultOf returns the fault that an error of the client library means.
func faultOf(err error) string {
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return faultOfReply(reply.Error())
	case isTLS(err):
		return faultNoTLS
	case isTimeout(err):
		return faultTimeout
	}
	return faultConnection
}

func faultOfReply(text string) string {
	text = trimErrorPrefix(text)
	for _, known := range replyFaults {
		if strings.HasPrefix(text, known.prefix) {
			return known.fault
		}
	}
	return faultOther
}

// trimErrorPrefix removes "ERR " and what Redis 6 puts before an error in a script, which is "ERR
// Error running script (…): @user_script:12: ".
func trimErrorPrefix(text string) string {
	const location = "@user_script"
	if at := strings.LastIndex(text, location); at >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		text = strings.TrimLeft(text[at+len(location):], ": 0123456789")
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "ERR "), "-")
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &timeout) && timeout.Timeout()
}

func isTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) ||
		errors.As(err, &header) || errors.As(err, &alert)
}
