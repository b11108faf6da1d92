package notify

import (
	"fmt"
	"io"
)

// Secret is a text that is not shown, such as a password or a URL with a key in it. It prints as
// "…" with every verb of fmt and in log/slog, and marshals to "…" as text and JSON. Untyped
// constants can be assigned to it, and string(s) returns the text. JSON texts can be unmarshaled
// into it.
//
// fmt calls no methods of values in unexported fields, so keep a Secret in an exported field of a
// struct that may be printed.
type Secret string

const masked = "…"

// Format prints "…", for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText returns "…".
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }
