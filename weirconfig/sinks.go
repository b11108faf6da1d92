package weirconfig

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
)

// sinkKind is the kind of a sink.
type sinkKind string

// The kinds of sinks.
const (
	logSink          sinkKind = "log"
	slackSink        sinkKind = "slack"
	teamsSink        sinkKind = "teams"
	pagerDutySink    sinkKind = "pagerduty"
	mailSink         sinkKind = "mail"
	webhookSink      sinkKind = "webhook"
	alertmanagerSink sinkKind = "alertmanager"
)

var sinkKinds = []sinkKind{logSink, slackSink, teamsSink, pagerDutySink, mailSink, webhookSink, alertmanagerSink}

// sinkFields are the fields that some kinds do not have, with the kinds that have them.
var sinkFields = map[string][]sinkKind{
	"url":      {slackSink, teamsSink, pagerDutySink, webhookSink, alertmanagerSink},
	"header":   {slackSink, teamsSink, pagerDutySink, webhookSink, alertmanagerSink},
	"repeat":   {slackSink, teamsSink, pagerDutySink, webhookSink, alertmanagerSink, mailSink},
	"breaker":  {slackSink, teamsSink, pagerDutySink, webhookSink, alertmanagerSink, mailSink},
	"key":      {pagerDutySink, webhookSink},
	"template": {webhookSink},
	"server":   {mailSink}, "user": {mailSink}, "password": {mailSink}, "from": {mailSink}, "to": {mailSink}, "no_tls": {mailSink},
}

// requiredFields are the fields that a kind requires.
var requiredFields = map[sinkKind][]string{
	slackSink: {"url"}, teamsSink: {"url"}, webhookSink: {"url"}, alertmanagerSink: {"url"},
	pagerDutySink: {"key"}, mailSink: {"server", "from", "to"},
}

// UnmarshalText reads the kind of a sink.
func (k *sinkKind) UnmarshalText(text []byte) error {
	return setOneOf(k, text, sinkKinds)
}

func (k *sinkKind) form() string { return joinWords(sinkKinds) }

// setOneOf sets v to the word in text, or returns an error if it is not one of the known words.
func setOneOf[T ~string](v *T, text []byte, known []T) error {
	if word := T(text); slices.Contains(known, word) {
		*v = word
		return nil
	}
	return fmt.Errorf("must be %s", joinWords(known))
}

// joinWords returns the words as a list.
func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// notifier returns the notifier of a valid sink.
func (s sink) notifier(name string, logger *slog.Logger) alert.Notifier {
	c := s.Config
	c.Name = name
	s.Name = name
	switch s.Kind {
	case slackSink:
		return notify.NewSlack(c)
	case teamsSink:
		return notify.NewTeams(c)
	case pagerDutySink:
		return notify.NewPagerDuty(c, s.Key)
	case mailSink:
		return notify.NewMail(s.mail())
	case alertmanagerSink:
		return notify.NewAlertmanager(c)
	case webhookSink:
		switch {
		case s.Template != "":
			return notify.NewTemplateWebhook(c, s.Template)
		case s.Key != "":
			return notify.NewSignedWebhook(c, s.Key)
		}
		return notify.NewWebhook(c)
	case logSink:
	}
	return alert.Func(name, alert.Log(logger).Notify)
}

func (d *decoder) checkSinks(doc *document) {
	for _, name := range slices.Sorted(maps.Keys(doc.Sinks)) {
		path, s := "sinks."+quotedKey(name), doc.Sinks[name]
		if s.Kind == "" {
			d.addMissing(path, "kind")
			continue
		}
		empty := map[string]bool{"url": s.URL == "", "key": s.Key == "", "server": s.Server == "", "from": s.From == "", "to": len(s.To) == 0}
		for _, key := range requiredFields[s.Kind] {
			if empty[key] {
				d.addMissing(path, key)
			}
		}
		if s.Kind != logSink {
			d.checkSink(path, s)
		}
		d.checkFieldsOf(path, s.Kind)
	}
}

// checkSink adds the faults of the values of a sink.
func (d *decoder) checkSink(path string, s sink) {
	// The breaker is checked as a part of notify.Config, because some of its defaults are those of
	// package notify.
	err := notify.Config{URL: "http://valid", Breaker: s.Breaker}.Validate()
	d.addInvalid(path+".breaker", reflect.TypeFor[breaker.Config](), err, "Breaker: ")
	if s.Kind == mailSink {
		valid := s.mail()
		valid.Breaker = breaker.Config{}
		valid.Server, valid.From = cmp.Or(s.Server, "valid:25"), cmp.Or(s.From, "valid@valid")
		if len(s.To) == 0 {
			valid.To = []string{valid.From}
		}
		d.addInvalid(path, reflect.TypeFor[sink](), valid.Validate(), "")
		return
	}
	s.URL = cmp.Or(s.URL, "http://valid")
	d.addInvalid(path, reflect.TypeFor[sink](), notify.Config{URL: s.URL, Header: s.Header, Repeat: s.Repeat}.Validate(), "")
	at := func(key string) int { return d.places[join(path, key)].line }
	switch {
	case s.Key != "" && s.Template != "":
		d.fault(at("template"), path, "template is set, must not be with key")
	case d.isFaulty(path) || s.Kind != webhookSink && s.Kind != pagerDutySink:
	case s.Kind == pagerDutySink && s.Key != "" && s.problem() != nil:
		d.fault(at("key"), path, "key (not shown) must be 32 letters and digits")
	case s.Kind == webhookSink && s.Template != "":
		if err := s.problem(); err != nil {
			d.add(d.locate(path, "template is invalid: "+strings.TrimPrefix(err.Error(), "notify: ")))
		}
	case s.Kind == webhookSink && s.Key != "" && s.problem() != nil:
		d.fault(at("key"), path, "key (not shown) must be whsec_ followed by 24 to 64 bytes in base64")
	}
}

// problem returns why there can be no notifier of the sink, or nil.
func (s sink) problem() (err error) {
	defer func() {
		if fault, ok := recover().(error); ok {
			err = fault
		}
	}()
	s.Breaker = breaker.Config{}
	s.notifier("", slog.Default())
	return nil
}

// addMissing adds a fault about a required field, unless the value of the field has a fault
// already.
func (d *decoder) addMissing(path, key string) {
	if at, known := d.places[join(path, key)]; !known || !at.bad {
		d.fault(d.places[path].line, path, "%s is missing", key)
	}
}

// checkFieldsOf adds a fault for each field that sinks of the kind do not have.
func (d *decoder) checkFieldsOf(path string, kind sinkKind) {
	for _, f := range fieldsOf(reflect.TypeFor[sink]()) {
		kinds, bound := sinkFields[f.key]
		if at, known := d.places[join(path, f.key)]; known && bound && !slices.Contains(kinds, kind) {
			d.fault(at.line, path, "%s is set, must not be for a sink of kind %s", f.key, kind)
		}
	}
}
