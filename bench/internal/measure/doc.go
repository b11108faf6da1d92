// Package measure finds what a piece of work costs, and how two of them compare.
//
// What is measured is a [Loop]: it does its work many times over and says how often it came out as it should, and
// a cost is only returned where that was every time. So a limiter that silently refuses, or a breaker
// that drops calls at random, cannot look fast.
//
// Two loops are compared in turn, A B A B and so on, because the speed of a shared machine drifts: the ratio of
// neighbours stays, and the spread of these ratios is the noise. Medians and their intervals are benchstat's.
package measure
