// Package pipeline sends commands to Redis, and sends many in one write if many callers come at the
// same time.
//
// A [Writer] has a few lanes. A caller that finds a free lane sends its command at once, alone:
// with few callers, a Writer behaves like a bare client. If all lanes are busy, callers queue. The
// first in the queue gets the next free lane and becomes the leader of a batch: it sends the
// commands of the callers behind it together with its own.
//
//	callers        queue             lanes              Redis
//	a ────────────────────────────►  [a]  ───────────►  one round trip
//	b ────────────────────────────►  [b]  ───────────►
//	c, d, e ─────► c d e ─────────►  [c d e] ────────►  one round trip for three
//
// If the queue is empty when a batch ends, the last caller of the batch frees the lane, not the
// first. Callers that return at once then meet in the queue and are batched again, instead of
// needing one round trip each.
//
// The callers' goroutines do all the work; none is started. Calls of one script become one command
// if the script can decide about many keys: see [Decision].
//
// # At most once
//
// A command that may have been executed is never sent again, whatever the retries of the client: a
// timeout does not tell whether the server has executed it. Some replies tell that it has not. A
// cluster client follows MOVED and ASK. A Writer sends the text of a script after NOSCRIPT, and
// sends decisions one by one after CROSSSLOT. After TRYAGAIN, or if servers redirect to each other,
// a slot is being moved; then it tries again, after pauses from 1ms to 16ms, until the command is
// due.
//
// A caller that gives up while it is in the queue has sent nothing. If its command is already being
// sent, the server may execute it.
//
// # Time
//
// No call lasts longer than its due time if the client obeys the deadlines of contexts
// (ContextTimeoutEnabled). A caller in the queue, or in the batch of another, leaves when its
// context ends or it is due. The leader of a batch stays until the reply has come or the batch is
// due. No other goroutine could do its work. If the leader's own deadline cut the connection, a
// short deadline of one caller would count as a failure of the server. A server that hangs
// therefore blocks the lanes for that time. A command with less than a quarter of Config.Timeout
// left is not sent, and fails with [ErrUnsent].
package pipeline
