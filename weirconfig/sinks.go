package weirconfig

import (
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
	webhookSink      sinkKind = "webhook"
	alertmanagerSink sinkKind = "alertmanager"
)

var sinkKinds = []sinkKind{logSink, slackSink, webhookSink, alertmanagerSink}

// UnmarshalText reads the kind of a sink.
func (k *sinkKind) UnmarshalText(text []byte) error {
	return oneOf(k, text, sinkKinds)
}

func (k *sinkKind) form() string { return listed(sinkKinds) }

// oneOf sets v to the word of a text, or returns an error if it is none of the known ones.
func oneOf[T ~string](v *T, text []byte, known []T) error {
	if word := T(text); slices.Contains(known, word) {
		*v = word
		return nil
	}
	return fmt.Errorf("must be %s", listed(known))
}

// listed returns the words as a list.
func listed[T ~string](words []T) string {
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
	switch s.Kind {
	case slackSink:
		return notify.NewSlack(c)
	case alertmanagerSink:
		return notify.NewAlertmanager(c)
	case webhookSink:
		if s.Key != "" {
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
		switch {
		case s.Kind == "":
			d.missing(path, "kind")
		case s.Kind == logSink:
			d.onlyKind(path)
		default:
			// Some defaults of the breaker are those of package notify.
			err := notify.Config{URL: "http://valid", Breaker: s.Breaker}.Validate()
			d.invalid(path+".breaker", reflect.TypeFor[breaker.Config](), err, "Breaker: ")
			d.checkSink(path, s)
		}
	}
}

func (d *decoder) checkSink(path string, s sink) {
	if s.URL == "" {
		d.missing(path, "url")
		s.URL = "http://valid"
	}
	d.invalid(path, reflect.TypeFor[sink](), notify.Config{URL: s.URL, Repeat: s.Repeat}.Validate(), "")
	if s.Key != "" && s.Kind != webhookSink {
		d.fault(d.places[path+".key"].line, path, "key is set, must not be for a sink of kind %s", s.Kind)
	}
	if s.Key != "" && s.Kind == webhookSink && !d.isFaulty(path) && !signs(s) {
		d.fault(d.places[path+".key"].line, path, "key (not shown) must be whsec_ followed by 24 to 64 bytes in base64")
	}
}

// signs reports whether a webhook accepts the key.
func signs(s sink) (ok bool) {
	defer func() { ok = recover() == nil }()
	notify.NewSignedWebhook(notify.Config{URL: s.URL}, s.Key)
	return true
}

// missing adds a fault about a required field, unless the value of the field has one already.
func (d *decoder) missing(path, key string) {
	if at, known := d.places[join(path, key)]; !known || !at.bad {
		d.fault(d.places[path].line, path, "%s is missing", key)
	}
}

// onlyKind adds a fault for each field of a sink besides its kind.
func (d *decoder) onlyKind(path string) {
	for _, f := range fieldsOf(reflect.TypeFor[sink]()) {
		if at, known := d.places[join(path, f.key)]; known && f.key != "kind" {
			d.fault(at.line, path, "%s is set, must not be for a sink of kind %s", f.key, logSink)
		}
	}
}
