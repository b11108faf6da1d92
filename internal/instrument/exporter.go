package instrument

import "github.com/weir-go/weir/stat"

// Instruments of exporters.
var (
	ExporterSourcePanics = &stat.Instrument{
		Name: "weir.exporter.source_panics", Unit: "{panic}", Kind: stat.Counter,
		Help: "Panics of sources that were being read.",
	}
	ExporterSkippedSamples = &stat.Instrument{
		Name: "weir.exporter.skipped_samples", Unit: "{sample}", Kind: stat.Counter, Attrs: []string{"weir.exporter.reason"},
		Help: "Samples that were left out, by what is wrong with their series.",
	}
)

// exporters lists them in the order of docs/metrics.md.
var exporters = []*stat.Instrument{ExporterSourcePanics, ExporterSkippedSamples}
