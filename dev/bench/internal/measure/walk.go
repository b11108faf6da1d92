package measure

import "math/rand/v2"

// Far is a step that visits up to a million objects in an order with many cache misses. It is a
// prime.
const Far = 7919

// Walk returns a loop that visits the objects 0 to size−1 in order, step objects at a time, from a
// random start.
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
