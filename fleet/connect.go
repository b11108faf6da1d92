package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet/internal/resp"
)

// checkServer asks a server once about itself: whether it is new enough, whether the client fits
// its cluster mode, whether the user may do what scripts do with the key, and whether it has
// redis-cell. If there are several servers, the first that answers stands for all.
func (l *Link) checkServer(ctx context.Context, n *node, key string, due time.Time) error {
	if l.serverChecked.Load() {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), due)
	defer cancel()
	info, err := n.do(ctx, "info", "server").Text()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		// without the right to ask, the version is not checked
		return err
	}
	if major := majorVersion(info); major > 0 && major < 6 {
		return &StoreError{link: l.name, Fault: faultTooOld}
	}
	if _, plain := l.client.(*redis.Client); plain && isClusterNode(info) {
		return &StoreError{link: l.name, Fault: faultMoved, final: true}
	}
	// decisions report other errors
	const attempt = "redis.call('TIME') redis.call('GET', KEYS[1]) return 1"
	if err := n.do(ctx, "eval", attempt, 1, key).Err(); err != nil && faultOf(err) == faultDenied {
		return err
	}
	cell, err := n.hasCommand(ctx, "cl.throttle")
	if err != nil {
		return err
	}
	l.hasCell.Store(cell)
	l.serverChecked.Store(true)
	return nil
}

// hasCommand reports whether the server says that it knows a command. It returns false if the
// server refuses to say, and an error if the server does not answer.
func (n *node) hasCommand(ctx context.Context, name string) (bool, error) {
	known, err := n.do(ctx, "command", "info", name).Slice()
	if _, ok := errors.AsType[redis.Error](err); ok {
		if fault := faultOf(err); fault == faultDenied || fault == faultOther {
			return false, nil
		}
	}
	return err == nil && len(known) == 1 && known[0] != nil, err
}

// do sends one command that is not retried.
func (n *node) do(ctx context.Context, args ...any) *redis.Cmd {
	command := unretried{redis.NewCmd(ctx, args...)}
	_ = n.client.Process(ctx, command) // the command has the error
	return command.Cmd
}

// unretried is a command that the client does not retry.
type unretried struct{ *redis.Cmd }

// NoRetry returns true.
func (unretried) NoRetry() bool { return true }

// majorVersion returns the major version in the reply to INFO, or 0 if there is none. Valkey
// reports the version of Redis it is compatible with.
func majorVersion(info string) int {
	_, version, _ := strings.Cut(info, "redis_version:")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// isClusterNode reports whether the reply to INFO says that the server is in cluster mode. Valkey
// names the field server_mode.
func isClusterNode(info string) bool {
	return strings.Contains(info, "redis_mode:cluster") || strings.Contains(info, "server_mode:cluster")
}

var errNoTLS = errors.New("tls: the server answers without TLS")

// answersWithoutTLS reports whether the client has TLS settings but its server answers without TLS.
// Redis then waits for the end of a line in the TLS handshake, so the dial times out without an
// error that says so.
func answersWithoutTLS(ctx context.Context, client redis.UniversalClient, timeout time.Duration) bool {
	addrs, secure := endpoints(client)
	return secure && anyServer(ctx, addrs, timeout, answersPing)
}

var errWantsTLS = errors.New("tls: the server wants TLS, and the client has no TLSConfig")

// wantsTLS reports whether a client has no TLS settings but its server accepts a TLS handshake.
// Redis then closes the connection without an error that says so.
func wantsTLS(ctx context.Context, client redis.UniversalClient, timeout time.Duration) bool {
	addrs, secure := endpoints(client)
	return !secure && anyServer(ctx, addrs, timeout, acceptsTLS)
}

// endpoints returns the addresses that a client was given, and whether it has TLS settings.
func endpoints(client redis.UniversalClient) (addrs []string, secure bool) {
	switch c := client.(type) {
	case *redis.Client:
		if o := c.Options(); o.Network == "tcp" {
			return []string{o.Addr}, o.TLSConfig != nil
		}
	case *redis.ClusterClient:
		return c.Options().Addrs, c.Options().TLSConfig != nil
	case *redis.Ring:
		return slices.Collect(maps.Values(c.Options().Addrs)), c.Options().TLSConfig != nil
	}
	return nil, false
}

// anyServer reports whether a check succeeds for one of the addresses.
func anyServer(ctx context.Context, addrs []string, timeout time.Duration, check func(context.Context, string) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return slices.ContainsFunc(addrs, func(addr string) bool { return check(ctx, addr) })
}

// acceptsTLS reports whether the server at an address accepts a TLS handshake. Nothing secret is
// sent, so the certificate does not matter.
func acceptsTLS(ctx context.Context, addr string) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// answersPing reports whether the server at an address answers PING without TLS, be it with an
// error.
func answersPing(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var first [1]byte
	if _, err = conn.Write([]byte("PING\r\n")); err == nil {
		_, err = conn.Read(first[:])
	}
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// dialErrors records the failed dials of a client. The client repeats dials in the background for
// longer than a decision may take, so the error of the decision is a timeout that does not say why
// there is no connection.
type dialErrors struct {
	mu     sync.Mutex
	byAddr map[string]dialError // the latest per address
	// watched are the clients that have the hook, if there are several servers.
	watched map[weak.Pointer[redis.Client]]struct{}
}

type dialError struct {
	at  time.Time
	err error
}

// anyAddr stands for all addresses.
const anyAddr = ""

// dialErrorsOf holds the dialErrors of each client. A client keeps its hooks forever, so all links
// of a client share one hook.
var dialErrorsOf struct {
	sync.Mutex
	byClient map[any]*dialErrors // by a weak pointer to the client
}

// watchDialErrors returns the dialErrors of a client. The first call for a client adds the hook.
func watchDialErrors(client redis.UniversalClient) *dialErrors {
	switch c := client.(type) {
	case *redis.Client:
		return watchOnce(c, func(d *dialErrors) { c.AddHook(dialHook{dialErrors: d}) })
	case *redis.ClusterClient:
		return watchOnce(c, func(d *dialErrors) { c.OnNewNode(d.watchNode) })
	case *redis.Ring:
		return watchOnce(c, func(d *dialErrors) { c.OnNewNode(d.watchNode) })
	}
	d := &dialErrors{}
	client.AddHook(dialHook{dialErrors: d})
	return d
}

func watchOnce[C any](client *C, addHook func(*dialErrors)) *dialErrors {
	key := any(weak.Make(client))
	dialErrorsOf.Lock()
	defer dialErrorsOf.Unlock()
	if d := dialErrorsOf.byClient[key]; d != nil {
		return d
	}
	if dialErrorsOf.byClient == nil {
		dialErrorsOf.byClient = map[any]*dialErrors{}
	}
	d := &dialErrors{}
	dialErrorsOf.byClient[key] = d
	runtime.AddCleanup(client, forgetClient, key)
	addHook(d)
	return d
}

// watchNode adds the hook to the client of one of several servers, unless it has it.
func (d *dialErrors) watchNode(node *redis.Client) {
	key := weak.Make(node)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.watched[key]; ok {
		return
	}
	if d.watched == nil {
		d.watched = map[weak.Pointer[redis.Client]]struct{}{}
	}
	if len(d.watched) >= maxNodes {
		maps.DeleteFunc(d.watched, func(k weak.Pointer[redis.Client], _ struct{}) bool { return k.Value() == nil })
	}
	d.watched[key] = struct{}{}
	node.AddHook(dialHook{d, node.Options().Addr})
}

// forgetClient forgets a client that was garbage collected.
func forgetClient(key any) {
	dialErrorsOf.Lock()
	defer dialErrorsOf.Unlock()
	delete(dialErrorsOf.byClient, key)
}

// record records the result of a dial.
func (d *dialErrors) record(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.byAddr, addr)
		return
	}
	if d.byAddr == nil || len(d.byAddr) >= maxNodes {
		d.byAddr = map[string]dialError{}
	}
	d.byAddr[addr] = dialError{time.Now(), err}
}

// latest returns the error of the latest dial of an address if it failed after since. A dial that
// is later than now was in another clock, such as that of a testing/synctest bubble.
func (d *dialErrors) latest(addr string, since time.Time) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, last := range d.byAddr {
		if (addr == anyAddr || addr == at) && last.at.After(since) && time.Since(last.at) >= 0 {
			since, err = last.at, last.err
		}
	}
	return err
}

// dialHook observes the dials of a client, and bounds replies. If the client is for one of several
// servers, the hook also tells commands of this package which server they are sent to.
type dialHook struct {
	*dialErrors
	addr string // "" for a client of one server
}

// DialHook records the result of each dial, and bounds the replies of each connection.
func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if h.record(addr, err); err == nil {
			conn = resp.Bound(conn)
		}
		return conn, err
	}
}

// ProcessHook tells a command which server it is sent to.
func (h dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.setServer(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook does the same for several commands.
func (h dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.setServer(cmd)
		}
		return next(ctx, cmds)
	}
}

func (h dialHook) setServer(cmd redis.Cmder) {
	if c, ok := cmd.(interface{ SentTo(addr string) }); ok {
		c.SentTo(h.addr)
	}
}
