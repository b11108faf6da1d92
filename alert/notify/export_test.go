package notify

import (
	"net/http"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// BreakerOf returns the breaker of a notifier.
func BreakerOf(n alert.Notifier) *breaker.Breaker {
	return n.(interface{ serverBreaker() *breaker.Breaker }).serverBreaker()
}

func (r receiver) serverBreaker() *breaker.Breaker { return r.breaker }

// Sign returns the signature headers for an id and a time.
func Sign(key, id string, at time.Time, body []byte) (http.Header, error) {
	k, err := parseKey(key)
	return k.sign(id, at, body), err
}

// MailMessage returns the message of a mail.
var MailMessage = mailMessage
