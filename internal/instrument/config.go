package instrument

const configFile = "weir.config.file"

// Instruments of a configuration file. Package weirconfig has the same.
var (
	ConfigUpdates = counter("weir.config.updates", "{update}",
		"Updates of the configuration while the program runs, by outcome: applied, or refused, which changes nothing.",
		configFile, "weir.config.outcome")
	ConfigRefused = upDown("weir.config.refused", "{file}",
		"1 if the last update was refused, so that the program runs with an earlier file, and 0 otherwise.", configFile)
	ConfigApplied = gauge("weir.config.applied.timestamp", "s",
		"Unix time at which the configuration in effect was applied.", configFile)
)
