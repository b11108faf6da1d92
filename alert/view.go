package alert

import guards "github.com/weir-go/weir/stat/view"

// Views yields the view of the monitor for package admin.
func (m *Monitor) Views(yield func(guards.View) bool) { yield(monitorView{m}) }

// monitorView is what package admin sees of a monitor, beside its methods.
type monitorView struct{ m *Monitor }

func (monitorView) Kind() string   { return "monitor" }
func (v monitorView) Name() string { return v.m.setup.Load().config.Instance }
