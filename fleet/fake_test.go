package fleet_test

import (
	"bufio"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// fakeServer is a server whose replies the test chooses, for replies that are hard to get from a
// real server.
type fakeServer struct {
	*testing.T
	addr string

	mu      sync.Mutex
	answers map[string]string // by command, in RESP; "" means that no reply comes
	asked   []string          // the commands received that have an answer, in lower case
}

// newFakeServer starts a server of version 7 without scripts and modules.
func newFakeServer(t *testing.T, answers map[string]string) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fakeServer{T: t, addr: listener.Addr().String(), answers: map[string]string{
		"info": bulkReply("# Server\r\nredis_version:7.0.15\r\n"), "command": "*1\r\n*-1\r\n", "ping": "+PONG\r\n",
	}}
	maps.Copy(f.answers, answers)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go f.serve(c)
		}
	}()
	return f
}

func bulkReply(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

// integerReply returns a reply of integers.
func integerReply(list ...int64) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(list)) + "\r\n")
	for _, n := range list {
		b.WriteString(":" + strconv.FormatInt(n, 10) + "\r\n")
	}
	return b.String()
}

func (f *fakeServer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, f.answer(strings.ToLower(args[0]), args)); err != nil {
			return
		}
	}
}

func (f *fakeServer) answer(command string, args []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.answers[command]
	if !ok {
		return "-ERR unknown command '" + command + "'\r\n"
	}
	if command != "info" && command != "command" {
		f.asked = append(f.asked, strings.ToLower(strings.Join(args, " ")))
	}
	return text
}

// setReply changes a reply.
func (f *fakeServer) setReply(command, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[command] = answer
}

// count returns how many commands were received.
func (f *fakeServer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// commands returns the commands received since the last call.
func (f *fakeServer) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func (f *fakeServer) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: f.addr, ContextTimeoutEnabled: true, DisableIdentity: true})
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// readCommand reads an array of bulk strings.
func readCommand(r *bufio.Reader) (args []string, err error) {
	n, err := readSize(r)
	for range n {
		size, err := readSize(r)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args = append(args, string(text[:size]))
	}
	return args, err
}

func readSize(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
