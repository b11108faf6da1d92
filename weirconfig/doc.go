// Package weirconfig makes gates, groups, limits and an alert monitor from one file in YAML or
// JSON.
//
//	gates:
//	  payments:
//	    rate: 100/s
//	    burst: 20
//	    breaker: {failure_rate: 30%, slow_call: 250ms, cooldown: 2s}
//	groups:
//	  tenants: {gate: {max_concurrent: 10}, max_keys: 5000}
//	limits:
//	  api: {policies: [{name: per-client, rate: 10/s, by: ip}]}
//	rules:
//	  - {name: payments fail, of: payments, value: failure_rate, span: 5m, when: above 5%, for: 30s}
//	sinks:
//	  team: {kind: slack, url: "${SLACK_URL}"}
//
// A program reads the file once and then takes the objects by their names:
//
//	file, err := weirconfig.Load("weir.yaml")
//	if err != nil {
//		return err
//	}
//	set, err := weirconfig.New(file, weirconfig.Config{})
//	if err != nil {
//		return err
//	}
//	payments, tenants := set.Gate("payments"), set.Group("tenants")
//	go set.Monitor().Run(ctx)
//	go set.Watch(ctx)
//
// The fields are those of weir.Config, weir.GroupConfig, weirhttp.LimitConfig, weirhttp.Policy,
// alert.Config, alert.Rule and notify.Config, in snake case: FailureRate is failure_rate. Bounds
// and defaults are the same. As in Go, 0 means the default, and off turns a feature off.
// docs/configuration.md lists all fields and the forms of values. Limits of package fleet,
// throttles, and limiters other than that of a gate cannot be written in a file yet.
//
// The command weirconfig/cmd/weirconfig checks files, for example in CI. With schema.json, a JSON
// Schema, editors complete and explain fields.
//
// # Config
//
// Functions such as breaker.Config.Classify are not data. A program sets them here:
//
//	Config  Default         Change it
//	Gate    none            to set functions of gates, such as Classify and OnChange
//	Limit   none            to set functions of limits, such as Answer
//	Notify  none            to add notifiers of your own
//	Rules   none            to add rules with values of your own
//	Logger  slog.Default()  to log alerts and failures elsewhere
//
// # Flow
//
//	file ──► Load ──► New ──► objects, by name ──► calls
//	  │                           ▲
//	  └────► Watch, Update ───────┴── a fault: the file is refused as a whole
//
// [Set.Update] changes the objects to those of another file while calls are made, and [Set.Watch]
// does so whenever the file or a secret in it changes.
//
// # Guarantees
//
//   - A file with a fault, or with a change that needs a restart, is refused as a whole:
//     docs/configuration.md has a table of such changes.
//   - Unknown fields, keys that are there twice, values out of bounds, and names that metrics could
//     not tell apart are refused, all at once, each with its line: see [Parse].
//   - Anchors, aliases, merge keys and tags of YAML are refused, and so is a file of more than 1
//     MB, with several documents, nested more than 16 deep, or with more than 50,000 lines, commas
//     and colons together. Reading a file takes at most 64 MB of memory.
//   - An object that was removed from the file refuses calls until it is back.
//   - ${NAME} in a value is replaced by an environment variable, and ${file:/path} by the content
//     of a file of at most 64 kB without the newline at its end. $${ stands for a plain ${. A
//     variable that is not set or empty is a fault. Names cannot have references.
//   - The values of references appear in no error, printed form or log of this package. If an
//     object with references has a value out of bounds, the fault names the field, but gives no
//     reason. Labels and annotations of rules and the instance of a monitor are sent to all sinks,
//     so do not put secrets there.
package weirconfig
