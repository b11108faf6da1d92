// Package report runs scenarios with guards and says what they show: as text, as the page
// docs/protection.md with its charts, and as the record of the goals that were reached.
package report
