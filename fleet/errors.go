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

// Fault is what is wrong with Redis. It is what the metric weir.limiter.backend.errors has as error.type.
type Fault string

// The faults. Those up to Trouble match ErrUnavailable.
const (
	Timeout     Fault = "timeout"     // no answer in time; it may have decided all the same
	Connection  Fault = "connection"  // it cannot be reached, or the connection was lost
	BreakerOpen Fault = "breaker"     // it was not asked, because it has failed too often lately
	Loading     Fault = "loading"     // it reads its data from disk
	ReadOnly    Fault = "readonly"    // it is a replica
	MasterDown  Fault = "masterdown"  // it is a replica that has lost its master
	ClusterDown Fault = "clusterdown" // its Cluster does not serve the slot, or is moving it
	Moved       Fault = "moved"       // the slot is on another server, and the client does not follow; matches ErrServer where INFO says so
	OutOfMemory Fault = "oom"         // its memory is full
	Busy        Fault = "busy"        // it runs some other script, has too many clients, or lacks replicas
	Trouble     Fault = "server"      // any other error

	Foreign Fault = "foreign" // matches ErrForeign
	TooOld  Fault = "version" // matches ErrServer
	Denied  Fault = "auth"    // matches ErrServer while a [Link] is made, ErrUnavailable later
	NoTLS   Fault = "tls"     // likewise
)

// faults are all of them, for the metrics.
var faults = []Fault{
	Timeout, Connection, BreakerOpen, Loading, ReadOnly, MasterDown, ClusterDown, Moved, OutOfMemory, Busy, Trouble,
	Foreign, TooOld, Denied, NoTLS,
}

// StoreError says why Redis did not decide. Its text has neither addresses nor credentials, nor what a script says.
//
// It matches ErrUnavailable, ErrForeign or ErrServer, by its Fault, and context.DeadlineExceeded where that is Timeout. It is no refusal, and
// does not match weir.ErrRefused.
type StoreError struct {
	Name  string    // of the link
	Fault Fault     // what is wrong
	Until time.Time // for BreakerOpen: when Redis will be asked again, as far as that is known
	Cause error     // what the client library or the breaker said, if anything: it may tell addresses, so the text leaves it out
	final bool      // found out while the link was made, or the server was first asked about itself
}

func (e *StoreError) Error() string { return "fleet: redis " + e.Name + ": " + faultText[e.Fault] }

var faultText = map[Fault]string{
	Timeout:     "no answer in time",
	Connection:  "no connection",
	BreakerOpen: "not asked, it has failed too often",
	Loading:     "loading its data",
	ReadOnly:    "read-only",
	MasterDown:  "its master is down",
	ClusterDown: "its cluster is down",
	Moved:       "part of a cluster, and the client is not one for clusters",
	OutOfMemory: "out of memory",
	Busy:        "busy",
	Trouble:     "an error of the server",
	Foreign:     "the key holds something else",
	TooOld:      "older than version 6",
	Denied:      "access denied",
	NoTLS:       "no TLS with a certificate that is accepted",
}

// Unwrap returns what the client library said. What the breaker before Redis said is left out, for that is a refusal and this is none.
func (e *StoreError) Unwrap() error {
	if e.Fault == BreakerOpen {
		return nil
	}
	return e.Cause
}

// Is reports whether the error is to be treated as target.
func (e *StoreError) Is(target error) bool {
	switch target {
	case ErrUnavailable, ErrForeign, ErrServer:
		return target == e.class()
	case context.DeadlineExceeded:
		return e.Fault == Timeout
	}
	return false
}

// RetryAfter is how long it is until Redis will be asked again, and 0 where that has come or is not known.
func (e *StoreError) RetryAfter() time.Duration {
	if e.Until.IsZero() {
		return 0
	}
	return max(time.Until(e.Until), 0)
}

func (e *StoreError) class() error {
	switch {
	case e.Fault == Foreign:
		return ErrForeign
	case e.Fault == TooOld, e.final && (e.Fault == Denied || e.Fault == NoTLS || e.Fault == Moved):
		return ErrServer
	}
	return ErrUnavailable
}

// replies are how the errors of a server begin.
var replies = []struct {
	prefix string
	fault  Fault
}{
	{"WRONGTYPE", Foreign},
	{"LOADING", Loading},
	{"READONLY", ReadOnly},
	{"MASTERDOWN", MasterDown},
	{"CLUSTERDOWN", ClusterDown},
	{"TRYAGAIN", ClusterDown},
	{"MOVED", Moved},
	{"ASK", Moved},
	{"OOM", OutOfMemory},
	{"BUSY", Busy},
	{"NOREPLICAS", Busy},
	{"MISCONF", Busy},
	{"max number of clients", Busy},
	{"NOAUTH", Denied},
	{"WRONGPASS", Denied},
	{"NOPERM", Denied},
	{"The user executing the script can't", Denied},
	{"ACL failure in script", Denied}, // since Redis 7.2, and in Valkey
	{"AUTH ", Denied},
	{"invalid password", Denied},
	{"Client sent AUTH", Denied},
}

// faultOf is what an error of the client library means.
func faultOf(err error) Fault {
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return faultOfReply(reply.Error())
	case isTLS(err):
		return NoTLS
	case isTimeout(err):
		return Timeout
	}
	return Connection
}

// faultOfReply is what an error of the server means.
func faultOfReply(text string) Fault {
	text = bare(text)
	for _, known := range replies {
		if strings.HasPrefix(text, known.prefix) {
			return known.fault
		}
	}
	return Trouble
}

// bare is an error of the server without what stands before it. Redis 6 puts what a script met behind "ERR Error running script (…): ".
func bare(text string) string {
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
