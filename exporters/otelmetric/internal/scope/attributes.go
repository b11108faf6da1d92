package scope

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/weir-go/weir/stat"
)

// Attributes returns the attributes of the series, without empty ones.
func Attributes(s *stat.Series) attribute.Set {
	attrs := make([]attribute.KeyValue, 0, len(s.Values))
	for n, value := range s.Values {
		if value != "" {
			attrs = append(attrs, attribute.String(s.Instrument.Attrs[n], value))
		}
	}
	return attribute.NewSet(attrs...)
}
