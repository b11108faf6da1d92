// Package scale measures how costs grow with sizes, and compares the result with the stated growth.
package scale
