// Package friend lets packages rediscell and redisson use more of package fleet than its page
// shows.
package friend

// Key opens package fleet for fleet.Inside. Only packages of this module can name it.
type Key struct{ _ int }
