package readme

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/prom"
)

func export(monitor *alert.Monitor) error {
	if err := prometheus.Register(prom.NewCollector(payments, monitor)); err != nil {
		return err
	}
	_, err := otelmetric.Register(otel.GetMeterProvider(), payments, monitor)
	return err
}
