// Package pipeline sends commands to Redis, many in one write where many callers
// come at once.
//
// A [Writer] has a few lanes. A caller that finds one free sends its command at once, alone: with
// few callers a Writer does what a bare client does. Where all lanes are busy callers
// queue, and the first in the queue takes the next free lane and all who stand
// behind it along:
//
//	callers        queue             lanes              Redis
//	a ────────────────────────────►  [a]  ───────────►  one round trip
//	b ────────────────────────────►  [b]  ───────────►
//	c, d, e ─────► c d e ─────────►  [c d e] ────────►  one round trip for three
//
// When a batch has its answers and nobody is in the queue, the last of the batch frees the lane, and not the first: so those who
// come back at once find each other in the queue, and need one round trip again instead of one each.
//
// All is done by the goroutines of the callers; none is started. What is of one script becomes one command, where the script can decide
// about many keys: see [Decision].
//
// # Once at most
//
// A command that may have been executed is never sent again, whatever the retries of the client: a timeout does not tell whether
// the server has executed it. Some answers do tell that it has not. The client of a Cluster follows MOVED and ASK. A Writer sends a
// script's text after NOSCRIPT, sends decisions one by one after CROSSSLOT, and tries again, after pauses from 1 to 16 ms, for as
// long as there is time, where a slot is on its way to another server: after TRYAGAIN, and where servers point at each other.
// A caller that gives up while its command is in the queue has sent nothing. Once a command is on its way
// giving up does not stop it: the server may execute it although nobody waits for the answer.
//
// # Time
//
// No call lasts longer than its due, if the client heeds the deadlines of contexts (ContextTimeoutEnabled). A caller in the queue, or in
// the batch of another, leaves when its context is done or its time is up. One that leads a batch stays until the answer has come or the batch is due: no
// goroutine of a Writer's could do so in its stead, and if the caller's deadline cut the connection a server would be judged by
// the patience of its callers. A server that hangs holds the lanes until then; what has less than a quarter of
// Config.Timeout left is not sent any more, and fails with [ErrUnsent].
package pipeline
