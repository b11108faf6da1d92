package notify

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/alert"
)

const (
	maxMailSubject = 200 // characters
	// Every SMTP server has to accept 64 kB (RFC 5321, section 4.5.3.1.7). Quoted-printable may
	// need three bytes per byte.
	maxMailText = 16_000 // bytes, of all alerts before they are encoded
)

// mailMessage returns a message in the form of RFC 5322.
func mailMessage(c MailConfig, alerts []alert.Alert, now time.Time) []byte {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	from, _ := mail.ParseAddress(c.From)
	domain := from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	header("From", from.String())
	var to []string
	for _, text := range c.To {
		a, _ := mail.ParseAddress(text)
		to = append(to, a.String())
	}
	header("To", strings.Join(to, ",\r\n "))
	header("Subject", mailHeader(mailSubject(alerts)))
	header("Date", now.Format(time.RFC1123Z))
	header("Message-ID", "<"+rand.Text()+"@"+domain+">")
	if len(alerts) == 1 {
		// the mails about one alert are a thread whose first message does not exist
		header("References", "<weir."+alerts[0].ID+"."+strconv.FormatInt(alerts[0].StartsAt.Unix(), 36)+"@"+domain+">")
	}
	header("Auto-Submitted", "auto-generated") // no automatic answers (RFC 3834)
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	encoded := quotedprintable.NewWriter(&b)
	for i, a := range alerts {
		if i > 0 {
			_, _ = encoded.Write([]byte("\n--------\n\n"))
		}
		_, _ = encoded.Write([]byte(mailText(a, maxMailText/len(alerts))))
	}
	_ = encoded.Close() // a bytes.Buffer returns no errors
	return b.Bytes()
}

// mailSubject returns the title of one alert, or the counts and rules of several.
func mailSubject(alerts []alert.Alert) string {
	if len(alerts) == 1 {
		return title(alerts[0])
	}
	firing, rules := 0, []string{}
	for _, a := range alerts {
		if a.State == alert.Firing {
			firing++
		}
		rules = append(rules, a.Rule)
	}
	slices.Sort(rules)
	var counts []string
	if firing > 0 {
		counts = append(counts, fmt.Sprintf("%d FIRING", firing))
	}
	if resolved := len(alerts) - firing; resolved > 0 {
		counts = append(counts, fmt.Sprintf("%d RESOLVED", resolved))
	}
	return "[" + strings.Join(counts, ", ") + "] " + strings.Join(slices.Compact(rules), ", ")
}

// mailHeader returns a text as the value of a header, in lines that are short enough. Its only line
// breaks are those of the folding. No part of the given text can be read as an encoded word.
func mailHeader(text string) string {
	text = oneLine(shortened(text, maxMailSubject))
	text = strings.ReplaceAll(text, "=?", "= ?")
	return strings.ReplaceAll(mime.QEncoding.Encode("utf-8", text), "?= =?", "?=\r\n =?")
}

// mailText describes an alert in at most n bytes.
func mailText(a alert.Alert, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\nvalue: %s\n%s\n", shortened(title(a), maxMailSubject), a.Summary, valueText(a), timesText(a))
	labels, annotations := details(a)
	for _, d := range slices.Concat(annotations, labels) {
		fmt.Fprintf(&b, "%s: %s\n", d.name, oneLine(d.value))
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(b.String(), "\uFFFD"), "\r", "")
	if len(text) <= n {
		return text
	}
	const more = "…\n"
	end := 0
	for at := range text {
		if at > n-len(more) {
			break
		}
		end = at
	}
	return text[:end] + more
}
