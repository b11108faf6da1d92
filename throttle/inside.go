package throttle

import (
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/window"
)

// Inside returns functions of throttles for the other packages of this module. Users cannot name
// the key.
func Inside(friend.Key) inside { return inside{} } //nolint:revive // only its methods are needed

// inside has the functions of throttles that gates use beyond the API.
type inside struct{}

// Record records the outcome of a call that t has allowed.
func (inside) Record(t *Throttle, o window.Outcome) { t.record(t.now(), o) }

// Name returns the name of t.
func (inside) Name(t *Throttle) string { return t.name }
