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

// ErrUnavailable is matched, through [errors.Is], by every error that says that Redis gave no answer: it cannot be reached, is too
// slow, or is in no state to decide. The policy of the limiter decides then: see [OnOutage].
var ErrUnavailable = errors.New("fleet: redis is unavailable")

// ErrForeign is matched by the error which says that a key of ours holds what no limiter of its kind can have written: all that is
// read from Redis is checked before it is used. Nothing is changed there.
// No policy applies, for waiting does not help: choose another [LinkConfig].Prefix or name, or delete the key.
var ErrForeign = errors.New("fleet: the key holds something else")

// ErrServer is matched by the error which says that the server cannot be used as it is, and that waiting does not help: it is older
// than Redis 6, refuses the credentials or the commands that are needed, has a certificate that is not accepted, or is of a Cluster and the
// client is not one for Clusters.
var ErrServer = errors.New("fleet: the server cannot be used")

// The faults: see StoreError.Fault. Those up to faultTrouble match ErrUnavailable.
const (
	faultTimeout     = "timeout"     // no answer in time; it may have decided all the same
	faultConnection  = "connection"  // it cannot be reached, or the connection was lost
	faultBreakerOpen = "breaker"     // it was not asked, because it has failed too often lately
	faultLoading     = "loading"     // it reads its data from disk
	faultReadOnly    = "readonly"    // it is a replica
	faultMasterDown  = "masterdown"  // it is a replica that has lost its master
	faultClusterDown = "clusterdown" // its Cluster does not serve the slot, or is moving it
	faultMoved       = "moved"       // the slot is on another server, and the client does not follow; matches ErrServer where INFO says so
	faultOutOfMemory = "oom"         // its memory is full
	faultBusy        = "busy"        // it runs some other script, has too many clients, or lacks replicas
	faultOther       = "server"      // any other error

	faultForeign = "foreign" // matches ErrForeign
	faultTooOld  = "version" // matches ErrServer
	faultDenied  = "auth"    // matches ErrServer while a Link is made, ErrUnavailable later
	faultNoTLS   = "tls"     // likewise
)

// faults are all of them, for the metrics.
var faults = []string{
	faultTimeout, faultConnection, faultBreakerOpen, faultLoading, faultReadOnly, faultMasterDown, faultClusterDown, faultMoved, faultOutOfMemory, faultBusy, faultOther,
	faultForeign, faultTooOld, faultDenied, faultNoTLS,
}

// StoreError says why Redis did not decide. Its text has neither addresses nor credentials, nor what a script says; what the client
// library said, which may, is what it wraps.
//
// It matches ErrUnavailable, ErrForeign or ErrServer, by its Fault, and context.DeadlineExceeded where that is timeout. It is no refusal,
// and does not match weir.ErrRefused.
type StoreError struct {
	// Fault is what is wrong with Redis, as the metric weir.limiter.backend.errors has it: timeout (it may have decided all the same),
	// connection, breaker (it was not asked, because it has failed too often lately), loading, readonly, masterdown, clusterdown, moved,
	// oom, busy or server, which match ErrUnavailable; foreign, which matches ErrForeign; and version, auth or tls, which match ErrServer, but
	// ErrUnavailable where they are found out only after the Link was made.
	Fault string

	link  string    // its name
	until time.Time // for a breaker: when Redis will be asked again, as far as that is known
	cause error     // what the client library or the breaker said, if anything
	final bool      // found out while the link was made, or the server was first asked about itself
}

func (e *StoreError) Error() string { return "fleet: redis " + e.link + ": " + faultText[e.Fault] }

var faultText = map[string]string{
	faultTimeout:     "no answer in time",
	faultConnection:  "no connection",
	faultBreakerOpen: "not asked, it has failed too often",
	faultLoading:     "loading its data",
	faultReadOnly:    "read-only",
	faultMasterDown:  "its master is down",
	faultClusterDown: "its cluster is down",
	faultMoved:       "part of a cluster, and the client is not one for clusters",
	faultOutOfMemory: "out of memory",
	faultBusy:        "busy",
	faultOther:       "an error of the server",
	faultForeign:     "the key holds something else",
	faultTooOld:      "older than version 6",
	faultDenied:      "access denied",
	faultNoTLS:       "no TLS with a certificate that is accepted",
}

// Unwrap returns what the client library said. What the breaker before Redis said is left out, for that is a refusal and this is none.
func (e *StoreError) Unwrap() error {
	if e.Fault == faultBreakerOpen {
		return nil
	}
	return e.cause
}

// Is reports whether the error is to be treated as target.
func (e *StoreError) Is(target error) bool {
	switch target {
	case ErrUnavailable, ErrForeign, ErrServer:
		return target == e.class()
	case context.DeadlineExceeded:
		return e.Fault == faultTimeout
	}
	return false
}

// RetryAfter is how long it is until Redis will be asked again, and 0 where that has come or is not known.
func (e *StoreError) RetryAfter() time.Duration {
	if e.until.IsZero() {
		return 0
	}
	return max(time.Until(e.until), 0)
}

func (e *StoreError) class() error {
	switch {
	case e.Fault == faultForeign:
		return ErrForeign
	case e.Fault == faultTooOld, e.final && (e.Fault == faultDenied || e.Fault == faultNoTLS || e.Fault == faultMoved):
		return ErrServer
	}
	return ErrUnavailable
}

// replies are how the errors of a server begin.
var replies = []struct {
	prefix string
	fault  string
}{
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
	{"ACL failure in script", faultDenied}, // since Redis 7.2, and in Valkey
	{"AUTH ", faultDenied},
	{"invalid password", faultDenied},
	{"Client sent AUTH", faultDenied},
}

// faultOf is what an error of the client library means.
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

// faultOfReply is what an error of the server means.
func faultOfReply(text string) string {
	text = trimErrorPrefix(text)
	for _, known := range replies {
		if strings.HasPrefix(text, known.prefix) {
			return known.fault
		}
	}
	return faultOther
}

// bare is an error of the server without what stands before it. Redis 6 puts what a script met behind "ERR Error running script (…): ".
func trimErrorPrefix(text string) string {
	const met = "@user_script"
	if at := strings.LastIndex(text, met); at >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		text = strings.TrimLeft(text[at+len(met):], ": 0123456789")
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
