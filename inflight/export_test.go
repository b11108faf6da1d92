package inflight

// SetLimit is what the views of operators do: it replaces Config.Limit and keeps the rest.
func (l *Limiter) SetLimit(n int) error {
	return l.set.Change(func() error { return l.replaceLimit(n) })
}
