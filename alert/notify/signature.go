package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signingKey is a symmetric key of the Standard Webhooks specification.
type signingKey []byte

// parseKey parses "whsec_" and 24 to 64 bytes in base64. Its error does not show the key.
func parseKey(key string) (signingKey, error) {
	encoded, found := strings.CutPrefix(key, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(raw) < 24 || len(raw) > 64 {
		return nil, errors.New(`notify: the key (not shown) must be "whsec_" followed by 24 to 64 bytes in base64`)
	}
	return raw, nil
}

// sign returns the headers that sign a message.
func (k signingKey) sign(id string, at time.Time, body []byte) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, k)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return http.Header{
		"Webhook-Id":        {id},
		"Webhook-Timestamp": {stamp},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
}
