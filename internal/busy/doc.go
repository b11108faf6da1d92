// Package busy finds the keys that a limiter refuses most often, in bounded memory.
package busy
