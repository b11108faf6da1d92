package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"slices"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// MailConfig configures a notifier of [NewMail].
type MailConfig struct {
	// Name is the name of the notifier and its breaker in metrics and logs. Default "mail".
	Name string
	// Server is the host and port of the SMTP server, such as smtp.example.com:587. On port 465 the
	// connection uses TLS from its beginning, and on any other port the command STARTTLS. Required.
	Server string
	// User is the name to log in with. Default none, which does not log in.
	User string
	// Password is the password of User. Default none.
	Password Secret
	// From is the address of the sender, such as "weir <weir@example.com>". Required.
	From string
	// To are the addresses of 1 to 100 recipients. Required.
	To []string
	// NoTLS sends without encryption, for a server on the same host. It cannot be used with User.
	// Default false.
	NoTLS bool
	// Repeat is how often a firing alert is sent again. Off sends it once. Default 4h.
	Repeat time.Duration
	// TLS configures the encryption. Default a certificate that is valid for the host of
	// Server is required.
	TLS *tls.Config
	// Dial connects to the server. Default the DialContext method of a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Breaker configures the breaker of the server. Default that of Config.Breaker.
	Breaker breaker.Config
}

// Limits of the recipients. Every SMTP server has to accept maxRecipients recipients (RFC 5321,
// section 4.5.3.1.8). maxAddress is the maximum length of an address with its name, in bytes.
const (
	maxRecipients = 100
	maxAddress    = 500
)

// Validate returns an error that names every invalid field, or nil. The error shows no values.
func (c MailConfig) Validate() error {
	var errs []error
	fault := func(text string) { errs = append(errs, errors.New("notify: "+text)) }
	if host, port, err := net.SplitHostPort(c.Server); err != nil || host == "" || port == "" {
		fault("Server (not shown) must be a host and a port, such as smtp.example.com:587")
	}
	if !validAddress(c.From) {
		fault("From (not shown) must be an e-mail address")
	}
	if len(c.To) == 0 || len(c.To) > maxRecipients || slices.ContainsFunc(c.To, func(to string) bool { return !validAddress(to) }) {
		fault(fmt.Sprintf("To (not shown) must be 1 to %d e-mail addresses", maxRecipients))
	}
	if c.User == "" && c.Password != "" {
		fault("Password is set, must not be without User")
	}
	if c.NoTLS && c.User != "" {
		fault("NoTLS is set, must not be with User: the password would be sent in plain text")
	}
	if c.Repeat < Off {
		fault(fmt.Sprintf("Repeat is %v, must be at least 0, or Off", c.Repeat))
	}
	if err := breakerConfig(c.Breaker).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("notify: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

func validAddress(text string) bool {
	_, err := mail.ParseAddress(text) // it accepts no line breaks
	return err == nil && len(text) <= maxAddress
}

// mailNotifier sends alerts by e-mail.
type mailNotifier struct {
	receiver
	config    func() MailConfig // a closure, whose contents fmt cannot print
	deferrals deferrals
}

// NewMail returns a notifier that sends alerts by e-mail, over SMTP (RFC 5321), as plain text.
// Alerts that are due together are sent in one mail, of at most 64 alerts. Mails about one alert
// refer to each other, so that mail programs show them together. Control characters and line breaks
// in names and labels cannot add headers or recipients. Texts are cut so that a mail has at most 64
// kB.
//
// The connection is encrypted unless NoTLS is set: if the server does not offer STARTTLS, or its
// certificate is not valid, nothing is sent. NewMail logs in with PLAIN, or with LOGIN if the
// server does not offer PLAIN. A mail is delivered if the server accepts it for at least one
// recipient. If it refuses others for now, by an answer from 400 to 499, Notify returns an error
// with Refused set, and the next attempts of the following hour send it to those alone. After an
// answer from 500 to 599, the next attempt follows 5 minutes later, or after Repeat if that is
// shorter. If the connection ends before the server has confirmed the mail, it is sent again and
// may arrive twice.
//
// NewMail panics with the error of c.Validate if there is one.
func NewMail(c MailConfig) alert.Notifier {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c.Name = cmp.Or(c.Name, "mail")
	c.To = slices.Clone(c.To)
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c.TLS = c.TLS.Clone()
	if c.TLS.ServerName == "" {
		c.TLS.ServerName, _, _ = net.SplitHostPort(c.Server)
	}
	return &mailNotifier{
		receiver: newReceiver(c.Name, cmp.Or(c.Repeat, 4*time.Hour), c.Breaker),
		config:   func() MailConfig { return c },
	}
}

// Notify sends a mail about the alert. Its error is an *alert.DeliveryError, unless ctx was
// canceled.
func (m *mailNotifier) Notify(ctx context.Context, a alert.Alert) error {
	return m.NotifyAll(ctx, []alert.Alert{a})
}

// NotifyAll sends one mail about the alerts. Its errors are those of Notify.
func (m *mailNotifier) NotifyAll(ctx context.Context, alerts []alert.Alert) error {
	if len(alerts) == 0 {
		return nil
	}
	var only []int // the recipients that have yet to get a single alert
	if len(alerts) == 1 {
		if d, ok := m.deferrals.find(alerts[0]); ok {
			// A negative time means that the last attempt was in another clock.
			if since := time.Since(d.last); since >= 0 && since < deferralPause {
				return d.refused.err()
			}
			only = d.refused.indices
		}
	}
	var late lateRecipients
	err := attempt(ctx, m.breaker, func(ctx context.Context) (err error) {
		c := m.config()
		late, err = sendMail(ctx, c, only, mailMessage(c, alerts, time.Now()))
		return err
	})
	if err != nil {
		return err
	}
	return m.deferrals.record(alerts, late)
}
