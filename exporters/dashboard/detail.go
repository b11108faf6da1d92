package dashboard

// detail is all that is known of one source, in JSON.
type detail struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"` // all of it
	Severity  string      `json:"severity,omitempty"`
	Class     string      `json:"class"` // calls, alert, notifier or other
	At        int64       `json:"at"`
	Interval  int64       `json:"interval"` // of the samples, in ms
	Length    int64       `json:"length"`   // of the charts, in ms
	Row       *row        `json:"row,omitempty"`
	Alert     *alertRow   `json:"alert,omitempty"`
	Reopens   number      `json:"reopens"` // in so many seconds an open breaker tries again
	Waiting   float64     `json:"waiting"`
	Available number      `json:"available"`
	Limit     number      `json:"limit"`
	Changes   []changeRow `json:"changes"`
	Past      history     `json:"past"`
	Figures   []figureRow `json:"figures"`
}

// history has a column for each chart line, and a value in each for each sample.
// Where a sample follows a pause, it is null in the columns that need two samples.
type history struct {
	At      []int64  `json:"at"`
	State   []string `json:"state"`
	Passed  []number `json:"passed"` // and did not fail, calls a second
	Failed  []number `json:"failed"`
	Refused []number `json:"refused"`
	Value   []number `json:"value"` // the failure rate, or the value of an alert
	P50     []number `json:"p50"`
	P99     []number `json:"p99"`
}

// figureRow is one series as its source yields it.
type figureRow struct {
	Instrument string     `json:"instrument"`
	Unit       string     `json:"unit"`
	Help       string     `json:"help"`
	Attrs      [][]string `json:"attrs"` // key and value, without those that name the line
	Value      number     `json:"value"`
}

// detail returns what is known of the line with the id, if there is one.
func (b *board) detail(id string) (*detail, bool) {
	l, ok := b.byID[id]
	if !ok {
		return nil, false
	}
	d := &detail{
		ID: l.id, Name: l.name, Severity: l.severity, Class: classNames[l.class],
		At: b.shown.at.UnixMilli(), Interval: b.config.Interval.Milliseconds(), Length: b.config.History.Milliseconds(),
		Reopens: l.now.reopens, Waiting: l.now.waiting, Available: l.now.available, Limit: l.now.limit,
		Changes: []changeRow{}, Past: l.past.columns(), Figures: []figureRow{},
	}
	if l.class == alerts {
		r := l.alertRow()
		d.Alert = &r
	} else if l.class != sinks {
		r := l.row()
		d.Row = &r
	}
	for _, e := range b.changes {
		if e.line == l.subject {
			d.Changes = append(d.Changes, e.row())
		}
	}
	for _, f := range l.figures {
		d.Figures = append(d.Figures, f.row(l.subject))
	}
	return d, true
}

var classNames = [...]string{calls: "calls", alerts: "alert", sinks: "notifier", others: "other"}

func (p *past) columns() history {
	n := len(p.points)
	h := history{
		At: make([]int64, n), State: make([]string, n), Passed: make([]number, n), Failed: make([]number, n),
		Refused: make([]number, n), Value: make([]number, n), P50: make([]number, n), P99: make([]number, n),
	}
	for i, one := range p.points {
		h.At[i], h.State[i] = one.at, one.state
		h.Value[i], h.P50[i], h.P99[i] = some(float64(one.value)), some(float64(one.p50)), some(float64(one.p99))
		f := p.flow(i)
		h.Failed[i], h.Refused[i] = f.failed, f.refused
		if f.passed.there {
			h.Passed[i] = some(f.passed.value - f.failed.value)
		}
	}
	return h
}

func (f *figure) row(of subject) figureRow {
	i := f.series.Instrument
	r := figureRow{Instrument: i.Name, Unit: i.Unit, Help: i.Help, Attrs: [][]string{}, Value: exact(f.shown)}
	naming := 1
	if of.class == alerts {
		naming = 2 // rule and severity
	}
	for n := naming; n < len(i.Attrs); n++ {
		if value := f.series.Values[n]; value != "" {
			r.Attrs = append(r.Attrs, []string{i.Attrs[n], value})
		}
	}
	return r
}
