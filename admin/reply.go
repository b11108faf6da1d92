package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// fault is an error with the answer to a request.
type fault struct {
	status        int
	text          string
	header, value string // of the answer, if header is not empty
}

func (f *fault) Error() string { return f.text }

func faultf(status int, format string, args ...any) error {
	return &fault{status: status, text: fmt.Sprintf(format, args...)}
}

// problem is the answer to a request that is refused.
type problem struct {
	Error  string `json:"error"`
	Status int    `json:"status"`
}

// reply writes v as JSON. It ignores an error of the connection, because the client cannot receive
// that error.
func reply(w http.ResponseWriter, status int, v any) {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // impossible: the types of this package can be written
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(content, '\n'))
}

// clip returns valid UTF-8 of at most n bytes.
func clip(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}
