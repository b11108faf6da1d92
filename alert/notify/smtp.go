package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/alert"
)

// maxQuit is how long to wait for the server's answer to QUIT after the mail was delivered.
const maxQuit = time.Second

// sendMail sends a message over a new connection, which is closed when ctx is done. It sends it to
// the recipients with the indices in only, or to all if only is empty. It returns those that the
// server refused for now, if it accepted others or they have been refused before.
func sendMail(ctx context.Context, c MailConfig, only []int, message []byte) (late lateRecipients, _ error) {
	conn, err := c.Dial(ctx, "tcp", c.Server)
	if err != nil {
		return late, transportError(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	host, port, _ := net.SplitHostPort(c.Server)
	stream := conn
	if port == "465" && !c.NoTLS {
		stream = tls.Client(conn, c.TLS)
	}
	client, err := smtp.NewClient(stream, host)
	if err != nil {
		return late, smtpError(ctx, "the connection", err)
	}
	if err := logIn(ctx, client, c, host); err != nil {
		return late, err
	}
	late, accepted, err := addRecipients(ctx, client, c, only)
	if err != nil {
		return late, err
	}
	if accepted > 0 {
		if err := sendData(ctx, client, message); err != nil {
			return late, err
		}
	}
	_ = conn.SetDeadline(time.Now().Add(maxQuit))
	_ = client.Quit()
	return late, nil
}

// logIn encrypts the connection and logs in.
func logIn(ctx context.Context, client *smtp.Client, c MailConfig, host string) error {
	if err := client.Hello(heloName()); err != nil {
		return smtpError(ctx, "EHLO", err)
	}
	if _, encrypted := client.TLSConnectionState(); !encrypted && !c.NoTLS {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return missingExtensionError("the server does not offer STARTTLS")
		}
		if err := client.StartTLS(c.TLS); err != nil {
			return smtpError(ctx, "STARTTLS", err)
		}
	}
	if c.User == "" {
		return nil
	}
	_, mechanisms := client.Extension("AUTH")
	words := " " + strings.ToUpper(mechanisms) + " "
	var auth smtp.Auth
	switch {
	case strings.Contains(words, " PLAIN "):
		auth = smtp.PlainAuth("", c.User, string(c.Password), host)
	case strings.Contains(words, " LOGIN "):
		auth = loginAuth{func() (string, string) { return c.User, string(c.Password) }}
	default:
		return missingExtensionError("the server offers neither AUTH PLAIN nor AUTH LOGIN")
	}
	if err := client.Auth(auth); err != nil {
		return smtpError(ctx, "AUTH", err)
	}
	return nil
}

// addRecipients names the sender and the recipients. If only is empty, which means all of them, it
// fails unless the server accepts at least one.
func addRecipients(ctx context.Context, client *smtp.Client, c MailConfig, only []int) (late lateRecipients, accepted int, _ error) {
	from, _ := mail.ParseAddress(c.From)
	if err := client.Mail(from.Address); err != nil {
		return late, 0, smtpError(ctx, "MAIL FROM", err)
	}
	var refusal error
	late.of = len(c.To)
	for i, text := range c.To {
		if len(only) > 0 && !slices.Contains(only, i) {
			continue
		}
		to, _ := mail.ParseAddress(text)
		err := client.Rcpt(to.Address)
		reply, answered := errors.AsType[*textproto.Error](err)
		switch {
		case err == nil:
			accepted++
		case !answered:
			return late, 0, smtpError(ctx, "RCPT TO", err)
		case reply.Code < 500:
			late.indices, late.code = append(late.indices, i), reply.Code
			refusal = err
		default:
			refusal = err
		}
	}
	if accepted == 0 && len(only) == 0 {
		return late, 0, smtpError(ctx, "RCPT TO", refusal)
	}
	return late, accepted, nil
}

// sendData sends the message. If the end of the message was sent and no answer came, the message
// may have arrived.
func sendData(ctx context.Context, client *smtp.Client, message []byte) error {
	w, err := client.Data()
	if err != nil {
		return smtpError(ctx, "DATA", err)
	}
	if _, err := w.Write(message); err != nil {
		return smtpError(ctx, "DATA", err)
	}
	err = w.Close()
	if err == nil || hasErrorOfType[*textproto.Error](err) || errors.Is(ctx.Err(), context.Canceled) {
		return smtpError(ctx, messageStep, err)
	}
	return &alert.DeliveryError{Kind: "timeout", Err: errors.New("no answer to the message")}
}

// pauseAfterRefusal is the pause after the server has refused the login, the sender or all
// recipients. Other alerts would be refused too, and many failed logins may lock an account.
const pauseAfterRefusal = 5 * time.Minute

// messageStep is the step in which the server accepts or refuses the alerts. Answers in earlier
// steps say something about the server, not about the alerts.
const messageStep = "the message"

// smtpError returns why a step failed, or nil. The server's text is not shown, because it may
// repeat names.
func smtpError(ctx context.Context, step string, err error) error {
	if err == nil {
		return nil
	}
	reply, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return transportError(ctx, err)
	}
	failed := &alert.DeliveryError{Err: fmt.Errorf("SMTP status %d to %s", reply.Code, step)}
	switch {
	case step == messageStep:
		failed.Refused = reply.Code >= 500
	case reply.Code >= 500:
		failed.Kind, failed.Pause = "unreachable", pauseAfterRefusal
	default:
		failed.Kind = "unreachable"
	}
	return failed
}

// missingExtensionError is the error for a server that lacks a required extension.
func missingExtensionError(text string) error {
	return &alert.DeliveryError{Kind: "unreachable", Pause: pauseAfterRefusal, Err: errors.New(text)}
}

// heloName returns the name of this host for the command EHLO.
func heloName() string {
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "localhost"
	}
	return name
}

// loginAuth is the mechanism LOGIN: the server asks for the user name and the password by two
// prompts. Source: draft-murchison-sasl-login-00.
type loginAuth struct {
	secret func() (user, password string)
}

// Start begins the exchange. It requires TLS.
func (a loginAuth) Start(server *smtp.ServerInfo) (protocol string, first []byte, err error) {
	if !server.TLS {
		return "", nil, errors.New("the connection is not encrypted")
	}
	return "LOGIN", nil, nil
}

// Next answers a prompt.
func (a loginAuth) Next(prompt []byte, more bool) (answer []byte, err error) {
	if !more {
		return nil, nil
	}
	user, password := a.secret()
	switch {
	case strings.HasPrefix(strings.ToLower(string(prompt)), "user"):
		return []byte(user), nil
	case strings.HasPrefix(strings.ToLower(string(prompt)), "pass"):
		return []byte(password), nil
	}
	return nil, errors.New("unknown prompt")
}
