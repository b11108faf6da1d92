package prom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

// queue is a user-defined source. It creates its series once.
type queue struct {
	length *stat.Series
	orders []string
}

func newQueue(name string) *queue {
	i := &stat.Instrument{
		Name: "shop.queue.length", Unit: "{order}", Help: "Orders that wait.",
		Kind: stat.UpDown, Attrs: []string{"shop.queue.name"},
	}
	return &queue{length: i.Series(name)}
}

func (q *queue) Observe(yield func(*stat.Series, float64) bool) {
	yield(q.length, float64(len(q.orders)))
}

// Every stat.Source can be exported: weir's gates, breakers and monitors, and your own types.
func ExampleNewCollector() {
	orders := newQueue("orders")
	orders.orders = []string{"a nut", "a bolt"}

	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(orders))
	printMetrics(registry)
	// Output:
	// shop_queue_length{shop_queue_name="orders"} 2
}

// Two independent parts of a program share a registry. The second one adds its sources to the
// collector of the first.
func ExampleCollector_Add() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(breaker.New("payments", breaker.Config{})))

	collector := prom.NewCollector()
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](registry.Register(collector)); ok {
		collector = there.ExistingCollector.(*prom.Collector)
	}
	if err := collector.Add(breaker.New("users", breaker.Config{})); err != nil {
		fmt.Println(err)
	}
	printMetrics(registry, "weir_breaker_slow_calls_total")
	// Output:
	// weir_breaker_slow_calls_total{weir_breaker_name="payments",weir_group_key=""} 0
	// weir_breaker_slow_calls_total{weir_breaker_name="users",weir_group_key=""} 0
}

func ExampleCollector_Remove() {
	orders := newQueue("orders")
	collector := prom.NewCollector(orders)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)

	collector.Remove(orders)
	printMetrics(registry) // nothing of it is left
	// Output:
}

// Export a breaker.
func ExampleCollector() {
	payments := breaker.New("payments", breaker.Config{})
	collector := prom.NewCollector(payments)

	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	_ = payments.Run(context.Background(), func(context.Context) error { return nil })
	printMetrics(registry, "weir_breaker_calls_total")
	// Output:
	// weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="failure",weir_group_key=""} 0
	// weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="ignored",weir_group_key=""} 0
	// weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="refused",weir_group_key=""} 0
	// weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="success",weir_group_key=""} 1
}

// printMetrics prints the metrics of a scrape without those of the exporter.
func printMetrics(g prometheus.Gatherer, names ...string) {
	lines, err := sampleLines(g, names...)
	if err != nil {
		fmt.Println(err)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "weir_exporter_") {
			fmt.Println(line)
		}
	}
}
