// Package read reads many sources of figures together. Exporters are built on it.
//
// A [Set] reads its sources once per reading, and yields each live series once, with the form that
// the exporter made of it when it first appeared:
//
//	set, err := read.New(func(s *stat.Series) string {
//		return s.Instrument.Name + "{" + strings.Join(s.Values, ",") + "}"
//	}, payments, mailer)
//	…
//	for name, value := range set.Observe {
//		fmt.Fprintln(w, name, value)
//	}
//
// A faulty source costs only itself: a source that panics, or shows a series that another source
// has, is counted and left out.
package read
