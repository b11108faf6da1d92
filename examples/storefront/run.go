package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/exporters/otelmetric"
)

// storefront holds all parts of a run.
type storefront struct {
	day       schedule
	start     time.Time
	shop      *shop
	payments  *weir.Gate
	monitor   *alert.Monitor
	settings  *settings
	journal   *journal
	service   *server
	metrics   *server
	telemetry *telemetry
}

// run runs and shows the shop until the time is over or the context is done. It writes the summary
// as the last line on stdout.
func run(ctx context.Context, o options, v view, stdout, stderr io.Writer) error {
	s, err := build(ctx, o)
	if err != nil {
		return err
	}
	s.run(ctx, v)
	sum, err := s.close()
	if missing := sum.missing(); len(missing) > 0 {
		printTo(stderr, "storefront: still zero: %s (a complete run of 5s has none)\n", strings.Join(missing, ", "))
	}
	if err != nil {
		printTo(stderr, "storefront: %v\n", err)
	}
	if _, err := fmt.Fprintln(stdout, sum); err != nil {
		return err
	}
	if !sum.addsUp() {
		return errors.New("the outcomes do not add up to the calls")
	}
	return nil
}

// build starts the servers and connects the shop to the service through the gate.
func build(ctx context.Context, o options) (s *storefront, err error) {
	start := time.Now()
	s = &storefront{day: newSchedule(o.run), start: start, journal: &journal{start: start}}
	defer func() {
		if err != nil {
			s.closeServers()
		}
	}()
	if s.service, err = serve(ctx, "127.0.0.1:0", &paymentService{day: s.day, opened: start}); err != nil {
		return nil, err
	}
	if s.settings, err = newSettings(o.run, s.journal.changed, alert.Func("journal", s.journal.alerted)); err != nil {
		return nil, err
	}
	s.payments, s.monitor = s.settings.Gate("payments"), s.settings.Monitor()
	s.shop = newShop(s.day, newPaymentClient(s.service.addr, deadline(o.run), s.payments))
	err = s.export(ctx, o)
	return s, err
}

// export exports the metrics of all objects of the configuration to Prometheus, to OpenTelemetry
// and to a live page.
func (s *storefront) export(ctx context.Context, o options) error {
	metrics, err := metricsHandler(s.settings.Sources()...)
	if err != nil {
		return err
	}
	if metrics, err = withAdmin(metrics, o.token, s.settings); err != nil {
		return err
	}
	if s.metrics, err = serve(ctx, o.listen, metrics); err != nil {
		return err
	}
	if s.telemetry, err = newTelemetry(ctx, exportEvery(o.run), o.otel, s.payments); err != nil {
		return err
	}
	_, err = otelmetric.Register(s.telemetry.provider, s.settings.Sources()...)
	return err
}

// run runs the shop and the view until the end.
func (s *storefront) run(ctx context.Context, v view) {
	ctx, cancel := context.WithDeadline(ctx, s.start.Add(s.day.run))
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { s.shop.open(ctx, s.start) })
	parts.Go(func() { s.monitor.Run(ctx) })
	parts.Go(func() { _ = s.settings.Watch(ctx) }) // fails only without a file
	parts.Go(func() { s.lowerLimit(ctx) })
	show(ctx, v, newSampler(s))
	parts.Wait()
}

// lowerLimit changes the limit when the last phase begins.
func (s *storefront) lowerLimit(ctx context.Context) {
	pause(ctx, time.Until(s.start.Add(s.day.end(s.day.phases[len(s.day.phases)-2]))))
	if ctx.Err() != nil {
		return
	}
	text := "weir.yaml not changed: "
	if from, err := s.settings.changeRate(lowRate); err != nil {
		text += err.Error()
	} else {
		text = "weir.yaml changed: the limit of payments was " + from + " and is " + lowRate
	}
	s.journal.add(time.Now(), text)
}

// close delivers the remaining alerts, exports once more, and returns the summary. The error names
// the steps that failed.
func (s *storefront) close() (summary, error) {
	defer s.closeServers()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	undelivered := s.monitor.Flush(ctx)
	series, unread := scrape(ctx, s.metricsURL())
	unsent := s.telemetry.close()
	_, seen := s.journal.read()
	sum := newSummary(s.shop, seen)
	sum.PrometheusSeries = series
	sum.OTelExports = s.telemetry.exporter.taken.Load()
	return sum, errors.Join(undelivered, unread, unsent)
}

func (s *storefront) metricsURL() string { return "http://" + s.metrics.addr + "/metrics" }

func (s *storefront) pageURL() string { return "http://" + s.metrics.addr + "/debug/weir/" }

// closeServers closes the servers that were started, and removes the file.
func (s *storefront) closeServers() {
	if s.settings != nil {
		s.settings.remove()
	}
	for _, server := range []*server{s.metrics, s.service} {
		if server != nil {
			server.close()
		}
	}
}
