// Package scale measures how costs grow with sizes, and compares that with what is said of them.
package scale
