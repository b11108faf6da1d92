package dashboard

// LimitStreams lets p serve at most n streams at once.
func LimitStreams(p *Page, n int) *Page {
	p.clients.limit = n
	return p
}

var (
	ErrorClass         = errorClass
	PlainDuration      = plainDuration
	WithPlainDurations = withPlainDurations
)
