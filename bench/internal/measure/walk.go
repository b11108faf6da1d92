package measure

import "math/rand/v2"

// Far is a step that leads through up to a million things in an order that caches do not like. It is a prime.
const Far = 7919

// Walk returns a loop that visits one of so many things after the other, so many steps from one to the next, and
// begins anywhere.
func Walk(size, step int, visit func(i int) (right bool)) Loop {
	return func(n int) (right int) {
		i := rand.IntN(size)
		for range n {
			if visit(i) {
				right++
			}
			if i += step; i >= size {
				i %= size
			}
		}
		return right
	}
}
