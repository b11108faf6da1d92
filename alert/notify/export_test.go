package notify

import (
	"net/http"
	"time"
)

// Sign returns the signature headers for an id and a time.
func Sign(key, id string, at time.Time, body []byte) (http.Header, error) {
	k, err := parseKey(key)
	return k.sign(id, at, body), err
}

// MailMessage returns the message of a mail.
var MailMessage = mailMessage
