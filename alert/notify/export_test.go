package notify

import (
	"net/http"
	"time"
)

// Sign lets a test sign with an id and a time of its own.
func Sign(key, id string, at time.Time, body []byte) (http.Header, error) {
	k, err := parseKey(key)
	return k.sign(id, at, body), err
}
