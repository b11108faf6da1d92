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

// storefront is all that runs.
type storefront struct {
	day       schedule
	start     time.Time
	shop      *shop
	payments  *weir.Gate
	monitor   *alert.Monitor
	journal   *journal
	service   *server
	metrics   *server
	telemetry *telemetry
}

// run runs the shop until the time is over or the context is done, shows it, and writes the
// summary as the last line on stdout.
func run(ctx context.Context, o options, v view, stdout, stderr io.Writer) error {
	s, err := build(ctx, o)
	if err != nil {
		return err
	}
	s.trade(ctx, v)
	sum, err := s.close()
	if missing := sum.missing(); len(missing) > 0 {
		put(stderr, "storefront: still zero: %s (a whole run of 5s has them all)\n", strings.Join(missing, ", "))
	}
	if err != nil {
		put(stderr, "storefront: %v\n", err)
	}
	if _, err := fmt.Fprintln(stdout, sum); err != nil {
		return err
	}
	if !sum.addsUp() {
		return errors.New("the calls do not add up")
	}
	return nil
}

// build opens the servers and puts the gate between the shop and the service.
func build(ctx context.Context, o options) (s *storefront, err error) {
	start := time.Now()
	s = &storefront{day: newSchedule(o.run), start: start, journal: &journal{start: start}}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.service, err = serve(ctx, "127.0.0.1:0", &paymentService{day: s.day, opened: start}); err != nil {
		return nil, err
	}
	s.payments = weir.New("payments", gateConfig(o.run, s.journal.changed))
	s.shop = newShop(s.day, newPaymentClient(s.service.addr, deadline(o.run), s.payments))
	tell := alert.Func("journal", s.journal.alerted)
	s.monitor = alert.NewMonitor(alertConfig(o.run, tell), alertRule(o.run, s.payments))
	err = s.export(ctx, o)
	return s, err
}

// export shows the gate's and the monitor's figures to Prometheus, to OpenTelemetry and on
// a live page.
func (s *storefront) export(ctx context.Context, o options) error {
	figures, err := figuresHandler(s.payments, s.monitor)
	if err != nil {
		return err
	}
	if s.metrics, err = serve(ctx, o.listen, figures); err != nil {
		return err
	}
	if s.telemetry, err = newTelemetry(ctx, exportEvery(o.run), o.otel, s.payments); err != nil {
		return err
	}
	_, err = otelmetric.Register(s.telemetry.provider, s.payments, s.monitor)
	return err
}

// trade sells and shows until the end.
func (s *storefront) trade(ctx context.Context, v view) {
	ctx, cancel := context.WithDeadline(ctx, s.start.Add(s.day.run))
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { s.shop.open(ctx, s.start) })
	parts.Go(func() { s.monitor.Run(ctx) })
	show(ctx, v, newLookout(s))
	parts.Wait()
}

// close delivers and exports what is left, and sums up. The error says what part of that
// did not work.
func (s *storefront) close() (summary, error) {
	defer s.release()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	undelivered := s.monitor.Flush(ctx)
	series, unread := scrape(ctx, s.metricsURL())
	unsent := s.telemetry.close()
	_, seen := s.journal.read()
	sum := sold(s.shop, seen)
	sum.PrometheusSeries = series
	sum.OTelExports = s.telemetry.exporter.taken.Load()
	return sum, errors.Join(undelivered, unread, unsent)
}

func (s *storefront) metricsURL() string { return "http://" + s.metrics.addr + "/metrics" }

func (s *storefront) pageURL() string { return "http://" + s.metrics.addr + "/debug/weir/" }

// release closes the servers, of which there may be none yet.
func (s *storefront) release() {
	for _, server := range []*server{s.metrics, s.service} {
		if server != nil {
			server.close()
		}
	}
}
