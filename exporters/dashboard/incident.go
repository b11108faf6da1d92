package dashboard

import (
	"slices"

	"github.com/weir-go/weir/internal/report"
)

// incidentRow is the time from an opening of a breaker until it has closed.
type incidentRow struct {
	Began    int64  `json:"began"`
	Ended    number `json:"ended"` // null while it lasts
	Openings int    `json:"openings"`
	Cause    string `json:"cause"`
}

func incidentRows(b *report.Breaker) (rows []incidentRow) {
	all := b.Past
	if b.Openings > 0 {
		all = append(slices.Clip(all), b.Incident)
	}
	for _, i := range all {
		rows = append(rows, incidentRow{Began: i.Began.UnixMilli(), Ended: unixMillis(i.Ended), Openings: i.Openings, Cause: withPlainDurations(i.Cause)})
	}
	return rows
}
