// Package resp bounds what a server may make its client allocate.
//
// The client library allocates the length that a reply declares before any of it has arrived, so a
// line of 15 bytes could end the process. [Bound] checks these lines first.
package resp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The most that one reply may have. A reply of package fleet has at most 3,523 values, and the list
// of the commands of a server about 10,000.
const (
	MaxValues = 1 << 18
	MaxText   = 16 << 20 // bytes of one text
	maxDepth  = 16       // of lists in lists
)

// ErrTooLarge is matched by the error of a reply that declares too much.
var ErrTooLarge = errors.New("resp: a reply is too large")

// bounded are the names of the commands whose replies are bounded: those that package fleet sends,
// and those that the client library sends by itself. After ASKING comes a command of package fleet.
// The values of other commands are the user's, and may be larger.
var bounded = map[string]bool{
	"eval": true, "evalsha": true, "cl.throttle": true, "info": true, "command": true,
	"hello": true, "auth": true, "client": true, "select": true, "readonly": true, "cluster": true,
	"ping": true, "asking": true,
}

// Bound returns a connection that fails if a reply to one of these commands declares or has more
// than the constants above. Replies to other commands, and what a subscription receives, are not
// checked.
func Bound(conn net.Conn) net.Conn {
	b := &boundConn{Conn: conn}
	if s, ok := conn.(syscall.Conn); ok {
		return &boundSysConn{b, s} // the client library examines idle connections by it
	}
	return b
}

// boundSysConn is a boundConn of a socket.
type boundSysConn struct {
	*boundConn
	syscall.Conn
}

// boundConn checks replies. The client library writes commands, and then reads all replies to them.
// Only subscriptions write and read at the same time, and they are not checked.
type boundConn struct {
	net.Conn
	failed error // of Read, which repeats it, because the client library ignores some errors

	mu         sync.Mutex
	subscribed bool // the connection is that of a subscription, which lasts
	asked      bool // something was written since the last read
	checks     bool
	scan       scanner
}

// Write notes which command is sent.
func (c *boundConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if !c.asked {
		name := commandName(p)
		c.subscribed = c.subscribed || strings.HasSuffix(name, "subscribe")
		c.asked, c.checks, c.scan = true, bounded[name] && !c.subscribed, scanner{}
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Read checks what it reads.
func (c *boundConn) Read(p []byte) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = false
	if c.checks {
		if c.failed = c.scan.scan(p[:n]); c.failed != nil {
			return 0, c.failed
		}
	}
	return n, err
}

// commandName returns the lower-case name of the command that p begins with.
func commandName(p []byte) string {
	_, rest, _ := bytes.Cut(p, []byte("\r\n"))
	_, rest, _ = bytes.Cut(rest, []byte("\r\n"))
	name, _, _ := bytes.Cut(rest[:min(len(rest), 32)], []byte("\r\n"))
	return string(bytes.ToLower(name))
}

// scanner follows replies in RESP2 and RESP3 that arrive in parts.
type scanner struct {
	line    [24]byte // the beginning of the current line
	lineLen int
	text    int // bytes of the current text that are still to come

	lists  [maxDepth]list // that are not complete, the outermost first
	depth  int
	values int // that the lists are still to have
}

type list struct {
	left      int
	attribute bool // precedes a value, and is none
}

// scan checks the next part.
func (s *scanner) scan(p []byte) error {
	for len(p) > 0 {
		if s.text > 0 {
			k := min(s.text, len(p))
			p = p[k:]
			if s.text -= k; s.text == 0 {
				s.endValue()
			}
			continue
		}
		end := bytes.IndexByte(p, '\n')
		part := p[:max(end, 0)]
		if end < 0 {
			part = p
		}
		if s.lineLen < len(s.line) {
			copy(s.line[s.lineLen:], part)
		}
		if s.lineLen += len(part); s.lineLen > MaxText {
			return fmt.Errorf("%w: a line of over %d bytes", ErrTooLarge, MaxText)
		}
		if end < 0 {
			return nil
		}
		p = p[end+1:]
		line := bytes.TrimSuffix(s.line[:min(s.lineLen, len(s.line))], []byte("\r"))
		s.lineLen = 0
		if err := s.begin(line); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the value of a line. The client library rejects unknown kinds.
func (s *scanner) begin(line []byte) error {
	if len(line) == 0 || bytes.IndexByte([]byte("$=!*~>%|"), line[0]) < 0 {
		s.endValue()
		return nil
	}
	n, err := strconv.Atoi(string(line[1:]))
	switch kind := line[0]; {
	case err != nil || n < -1:
		return fmt.Errorf("%w: the length %.24q", ErrTooLarge, line)
	case n < 0: // null
		s.endValue()
	case kind == '$' || kind == '=' || kind == '!':
		if n > MaxText {
			return fmt.Errorf("%w: a text of %d bytes, must be at most %d", ErrTooLarge, n, MaxText)
		}
		s.text = n + len("\r\n")
	default:
		return s.beginList(kind, n)
	}
	return nil
}

// beginList begins a list of n values, or of n pairs.
func (s *scanner) beginList(kind byte, n int) error {
	if n > MaxValues {
		return fmt.Errorf("%w: a list of %d values, must be at most %d", ErrTooLarge, n, MaxValues)
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	if n == 0 {
		if kind != '|' {
			s.endValue()
		}
		return nil
	}
	if s.values += n; s.values > 2*MaxValues || s.depth == maxDepth {
		return fmt.Errorf("%w: %d values in lists of depth %d", ErrTooLarge, s.values, s.depth+1)
	}
	s.lists[s.depth] = list{n, kind == '|'}
	s.depth++
	return nil
}

// endValue ends a value, and the lists of which it is the last.
func (s *scanner) endValue() {
	for s.depth > 0 {
		innermost := &s.lists[s.depth-1]
		innermost.left--
		s.values--
		if innermost.left > 0 {
			return
		}
		if s.depth--; innermost.attribute {
			return
		}
	}
}
