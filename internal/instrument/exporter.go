package instrument

// Instruments of exporters.
var (
	ExporterSourcePanics = counter("weir.exporter.source_panics", "{panic}",
		"Panics of sources while they were read.")
	ExporterSkippedSamples = counter("weir.exporter.skipped_samples", "{sample}",
		"Samples that were left out, by what is wrong with their series.", "weir.exporter.reason")
)
