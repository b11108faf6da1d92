package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// replyError is an error with the answer to a request.
type replyError struct {
	status        int
	text          string
	header, value string // of the answer, if header is not empty
}

func (f *replyError) Error() string { return f.text }

// reply writes the error as the answer.
func (f *replyError) reply(w http.ResponseWriter) {
	if f.header != "" {
		w.Header().Set(f.header, f.value)
	}
	reply(w, f.status, problem{f.text, f.status})
}

func replyErrorf(status int, format string, args ...any) error {
	return &replyError{status: status, text: fmt.Sprintf(format, args...)}
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

// truncateText returns valid UTF-8 of at most n bytes.
func truncateText(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}
