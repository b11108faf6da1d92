// Package read reads the metrics of many sources together. Exporters are built on it.
//
// A [Set] reads its sources and yields each live series once, with a form of it that the exporter
// made when the series first appeared:
//
//	set, err := read.New(func(s *stat.Series) string {
//		return s.Instrument.Name + "{" + strings.Join(s.Values, ",") + "}"
//	}, payments, mailer)
//	…
//	for name, value := range set.Observe {
//		fmt.Fprintln(w, name, value)
//	}
//
// A faulty source does not affect the others: if a source panics, or yields a series that another
// source has, the fault is counted and the series is left out.
package read
