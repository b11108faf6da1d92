package resp_test

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/resp"
)

// conn is a connection whose other end has sent replies.
type conn struct {
	net.Conn
	replies io.Reader
}

func (c conn) Read(p []byte) (int, error)  { return c.replies.Read(p) }
func (c conn) Write(p []byte) (int, error) { return len(p), nil }

// ask sends a command and returns what can be read, at once or byte by byte.
func ask(t *testing.T, command, reply string, reader func(io.Reader) io.Reader) (string, error) {
	t.Helper()
	c := resp.Bound(conn{replies: reader(strings.NewReader(reply))})
	_, err := io.WriteString(c, "*1\r\n$9\r\n"+command+"\r\n")
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	return string(got), err
}

var readers = map[string]func(io.Reader) io.Reader{
	"at once": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader, "in halves": iotest.HalfReader,
}

func TestRepliesThatDeclareTooMuchAreErrors(t *testing.T) {
	for reply, want := range map[string]string{
		"*1099511627776\r\n:1\r\n":            "a list of 1099511627776 values, must be at most 262144",
		"*9223372036854775807\r\n":            "a list of 9223372036854775807 values",
		"$9223372036854775807\r\n":            "a text of 9223372036854775807 bytes, must be at most 16777216",
		"*2\r\n$9223372036854775806\r\n":      "a text of",
		"*1\r\n*2\r\n:1\r\n:2\r\n*262145\r\n": "a list of 262145 values",
		"%9223372036854775807\r\n":            "a list of",
		"|99999999\r\n":                       "a list of",
		"~99999999\r\n":                       "a list of",
		">99999999\r\n":                       "a list of",
		"=99999999\r\n":                       "a text of",
		"!99999999\r\n":                       "a text of",
		"*99999999999999999999999\r\n":        "the length",
		"$-7\r\n":                             "the length",
		"$1a\r\n":                             "the length",
		strings.Repeat("*1\r\n", 17):          "values in lists of depth 17",
		strings.Repeat("*200000\r\n", 3):      "600000 values in lists of depth 3",
		"+" + strings.Repeat("x", 16<<20+1):   "a line of over 16777216 bytes",
	} {
		for how, reader := range readers {
			if len(reply) > 1<<20 && how == "by bytes" {
				continue
			}
			_, err := ask(t, "EVALSHA", reply, reader)
			require.ErrorIs(t, err, resp.ErrTooLarge, "%.40q", reply)
			require.ErrorContains(t, err, want, "%.40q", reply)
			got, err := ask(t, "lrange", reply, reader)
			require.NoError(t, err, "another command")
			require.Equal(t, reply, got)
		}
	}
}

func TestRepliesPassUnchanged(t *testing.T) {
	replies := []string{
		"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$3\r\na\nb\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "_\r\n", "#t\r\n", ",1.5\r\n",
		"(123456789012345678901234567890\r\n", "*2\r\n:1\r\n*2\r\n$5\r\n*9\r\n9\r\n:2\r\n", "%1\r\n+a\r\n:1\r\n", "~1\r\n:1\r\n",
		"|1\r\n+ttl\r\n:1\r\n*1\r\n:2\r\n", "*2\r\n|1\r\n+a\r\n:1\r\n:5\r\n:6\r\n", "=7\r\ntxt:abc\r\n", "!5\r\nERR x\r\n", ">2\r\n+a\r\n+b\r\n",
		"HTTP/1.1 400 Bad Request\r\n", "\r\n", strings.Repeat("*1\r\n", 16) + ":1\r\n", "+" + strings.Repeat("$99999999", 100) + "\r\n",
	}
	var long strings.Builder
	for range 1000 { // depths and values are counted per reply
		long.WriteString(strings.Join(replies, ""))
	}
	long.WriteString("*262144\r\n" + strings.Repeat(":1\r\n", 262144))
	for _, reply := range append(replies, long.String()) {
		for how, reader := range readers {
			got, err := ask(t, "evalsha", reply, reader)
			require.NoError(t, err, "%.40q %s", reply, how)
			require.Equal(t, reply, got)
		}
	}
}

// The client library also sends these commands by itself.
func TestRepliesToTheClientLibraryAreBounded(t *testing.T) {
	for _, command := range []string{"PING", "asking", "cluster", "command", "hello"} {
		_, err := ask(t, command, "$9223372036854775807\r\n", readers["at once"])
		require.ErrorIs(t, err, resp.ErrTooLarge, command)
	}
}

func TestAConnectionThatHasFailedKeepsItsError(t *testing.T) {
	c := resp.Bound(conn{replies: strings.NewReader("*-7\r\n+OK\r\n")})
	_, err := io.WriteString(c, "*1\r\n$4\r\nping\r\n")
	require.NoError(t, err)
	for range 2 {
		_, err = c.Read(make([]byte, 5))
		require.ErrorIs(t, err, resp.ErrTooLarge)
	}
}

// A subscriber sends PING while a message may have arrived in part.
func TestMessagesOfASubscriptionAreNotChecked(t *testing.T) {
	message := "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$44\r\n" + strings.Repeat("*99999999\r\n", 4) + "\r\n"
	c := resp.Bound(conn{replies: strings.NewReader(message)})
	part := make([]byte, len(message)/2)
	for _, command := range []string{"ssubscribe", "ping"} {
		_, err := io.WriteString(c, "*1\r\n$4\r\n"+command+"\r\n")
		require.NoError(t, err)
		_, err = io.ReadFull(c, part)
		require.NoError(t, err)
	}
}

// The client library examines sockets through syscall.Conn. A connection that is none must not
// claim to be one.
func TestBoundKeepsSockets(t *testing.T) {
	_, is := resp.Bound(conn{}).(syscall.Conn)
	require.False(t, is)
	_, is = resp.Bound(&net.TCPConn{}).(syscall.Conn)
	require.True(t, is)
}
