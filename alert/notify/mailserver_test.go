package notify_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mailServer is an SMTP server in memory that enforces RFC 5321: the order of the commands, the
// lengths of lines, CRLF, at most 100 recipients, and at most 64 kB of text.
type mailServer struct {
	cert       tls.Certificate
	roots      *x509.CertPool
	implicit   bool   // TLS from the first byte on
	noStartTLS bool   // STARTTLS is not offered
	auth       string // the mechanisms offered over TLS
	// by command, or by command and argument, instead of the usual answer
	answers map[string]string
	drop    string // the connection ends at this command, or at the end of the text
	silent  string // there is no answer to this command

	mu     sync.Mutex
	faults []string
	mails  []receivedMail
	logins []string
	conns  int
}

type receivedMail struct {
	from string
	to   []string
	raw  string
}

// mailHost is the host that the certificate of the server is valid for.
const mailHost = "mail.example"

func newMailServer(t *testing.T) *mailServer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{mailHost}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	s := &mailServer{cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots: x509.NewCertPool(), auth: "PLAIN LOGIN"}
	s.roots.AddCert(parsed)
	return s
}

func (s *mailServer) dial(context.Context, string, string) (net.Conn, error) {
	client, conn := net.Pipe()
	s.mu.Lock()
	s.conns++
	s.mu.Unlock()
	go s.serve(conn)
	return client, nil
}

// session is a connection to a mailServer.
type session struct {
	*mailServer
	conn  net.Conn
	r     *bufio.Reader
	tls   bool
	mail  receivedMail
	begun bool // MAIL FROM was accepted
}

func (s *mailServer) serve(conn net.Conn) {
	defer conn.Close()
	c := &session{mailServer: s, conn: conn, r: bufio.NewReader(conn)}
	if s.implicit && !c.encrypt() {
		return
	}
	if s.silent == "" || s.silent != "greeting" {
		c.reply("greeting", "220 "+mailHost)
	}
	for {
		line, ok := c.readLine(512)
		if !ok {
			return
		}
		verb, argument, _ := strings.Cut(line, " ")
		if verb == s.drop {
			return
		}
		if verb != s.silent && !c.command(verb, argument) {
			return
		}
	}
}

// readLine reads a line that must end with CRLF and have at most limit bytes, including the CRLF.
func (c *session) readLine(limit int) (string, bool) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", false
	}
	if !strings.HasSuffix(line, "\r\n") || strings.Count(line, "\r") > 1 || len(line) > limit {
		c.reportFault("a line of %d bytes: %.100q", len(line), line)
	}
	return strings.TrimSuffix(line, "\r\n"), true
}

func (s *mailServer) reportFault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// reply sends the answer that the test has set for the command, or the usual one. It returns
// whether the answer is positive.
func (c *session) reply(command, usual string) bool {
	verb, _, _ := strings.Cut(command, " ")
	c.mu.Lock()
	answer := usual
	for _, key := range []string{command, verb} {
		if set, ok := c.answers[key]; ok {
			answer = set
			break
		}
	}
	c.mu.Unlock()
	_, _ = io.WriteString(c.conn, strings.ReplaceAll(answer, "\n", "\r\n")+"\r\n")
	return answer[0] < '4'
}

func (c *session) encrypt() bool {
	secure := tls.Server(c.conn, &tls.Config{Certificates: []tls.Certificate{c.cert}, SessionTicketsDisabled: true})
	if secure.HandshakeContext(context.Background()) != nil {
		return false
	}
	c.conn, c.r, c.tls = secure, bufio.NewReader(secure), true
	return true
}

func (c *session) command(verb, argument string) (goOn bool) {
	switch verb {
	case "EHLO":
		answer := "250-" + mailHost + "\n250-8BITMIME"
		if !c.tls && !c.noStartTLS {
			answer += "\n250-STARTTLS"
		}
		if c.tls && c.auth != "" {
			answer += "\n250-AUTH " + c.auth
		}
		c.reply(verb, answer+"\n250 SIZE 65536")
	case "STARTTLS":
		return !c.reply(verb, "220 go ahead") || c.encrypt()
	case "AUTH":
		c.logIn(argument)
	case "MAIL":
		c.begun = c.reply(verb, "250 ok")
		c.mail = receivedMail{from: argument}
	case "RCPT":
		if !c.begun {
			c.reportFault("RCPT before MAIL")
		}
		if c.reply(verb+" "+argument, "250 ok") {
			c.mail.to = append(c.mail.to, argument)
		}
	case "DATA":
		return c.receiveMessage()
	case "HELO": // net/smtp tries it if EHLO fails
		c.reply(verb, "502 not here")
	case "*": // net/smtp sends it after a refused AUTH
		c.reply(verb, "501 canceled")
	case "QUIT":
		c.reply(verb, "221 bye")
		return false
	default:
		c.reportFault("command %q", verb)
		c.reply(verb, "500 what?")
	}
	return true
}

func (c *session) logIn(argument string) {
	mechanism, first, _ := strings.Cut(argument, " ")
	if !c.tls || !slices.Contains(strings.Fields(strings.ToUpper(c.auth)), mechanism) {
		c.reportFault("AUTH %s, over TLS: %v", mechanism, c.tls)
	}
	decode := func(text string) string {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			c.reportFault("AUTH: %q is not base64", text)
		}
		return string(raw)
	}
	login := strings.TrimPrefix(strings.ReplaceAll(decode(first), "\x00", " "), " ")
	if mechanism == "LOGIN" {
		for _, prompt := range []string{"Username:", "Password:"} {
			_, _ = io.WriteString(c.conn, "334 "+base64.StdEncoding.EncodeToString([]byte(prompt))+"\r\n")
			line, _ := c.readLine(512)
			login += decode(line) + " "
		}
	}
	if c.reply("AUTH", "235 welcome") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.logins = append(c.logins, mechanism+" "+strings.TrimSpace(login))
	}
}

func (c *session) receiveMessage() (goOn bool) {
	if len(c.mail.to) == 0 || len(c.mail.to) > 100 {
		c.reportFault("DATA for %d recipients", len(c.mail.to))
	}
	if !c.reply("DATA", "354 go on") {
		return true
	}
	var text bytes.Buffer
	for {
		line, ok := c.readLine(1000)
		if !ok {
			return false
		}
		if line == "." {
			break
		}
		text.WriteString(strings.TrimPrefix(line, ".") + "\r\n")
	}
	if text.Len() > 64_000 {
		c.reportFault("a text of %d bytes", text.Len())
	}
	c.mail.raw = text.String()
	if c.drop == "." {
		return false
	}
	if c.silent != "." && c.reply(".", "250 queued") {
		c.mu.Lock()
		c.mails = append(c.mails, c.mail)
		c.mu.Unlock()
	}
	return true
}

// received returns the mails so far.
func (s *mailServer) received() []receivedMail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// parsed returns the headers and the decoded text of a mail.
func (m receivedMail) parsed(t *testing.T) (mail.Header, string) {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(m.raw))
	require.NoError(t, err)
	require.Equal(t, "text/plain; charset=utf-8", message.Header.Get("Content-Type"))
	require.Equal(t, "quoted-printable", message.Header.Get("Content-Transfer-Encoding"))
	body, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	require.NoError(t, err)
	return message.Header, strings.ReplaceAll(string(body), "\r\n", "\n")
}
