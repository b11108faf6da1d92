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
// A command is never sent again, whatever the retries of the client: a timeout does not tell whether
// the server has executed it. (MOVED and ASK do tell that it has not: the client of a Cluster follows
// them.) A caller that gives up while its command is in the queue has sent
// nothing. Once a command is on its way giving up does not stop it: the server may execute
// it although nobody waits for the answer.
//
// # Time
//
// No call lasts longer than Config.Timeout, if the client heeds the deadlines of contexts
// (ContextTimeoutEnabled). A server that hangs holds the lanes until then; what stands in the queue and has
// less than a quarter of its time left is not sent any more, and fails with [ErrUnsent]. In a
// Cluster the slots are divided among 16 queues, so that a master that hangs does not
// hold up those of the others.
package pipeline
