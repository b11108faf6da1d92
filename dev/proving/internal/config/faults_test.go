package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/config"
)

// readFaults returns the lines of the error for a file.
func readFaults(t *testing.T, file string) []string {
	_, err := config.Read("a.yaml", strings.NewReader(file))
	require.Error(t, err)
	return strings.Split(err.Error(), "\n")
}

func TestEveryFaultOfTheFormIsNamedWithItsLineAndField(t *testing.T) {
	require.Equal(t, []string{
		`a.yaml:2: service.servers is "many", must be a whole number`,
		`a.yaml:3: service.time is invalid: "lognormal 50ms" must be like 50ms, constant 50ms, lognormal 50ms 1.0 or bimodal 5ms 200ms 10%`,
		`a.yaml:4: service.error_rate is "2 %", must be a number such as 0.5 or 50%`,
		`a.yaml:5: service.speed is unknown, must be one of drops_abandoned, error_rate, hosts, in_turn, queue, retry_after, servers, time`,
		`a.yaml:7: load[0].rate is invalid: limiter: Rate is "fast", must be like 100/s, 10/1m, 5000/24h or unlimited`,
		`a.yaml:8: load[0].timeout is "5", must be a duration such as 500ms, 5s or 1m30s`,
		`a.yaml:9: load[0].timeout is there twice`,
		`a.yaml:10: faults must be a list`,
		`a.yaml:13: guards[0].name must be a text`,
		`a.yaml:14: guards[0].breaker.latency is "perhaps", must be true or false`,
		`a.yaml:15: guards[0].breaker.on_change is a function, which a file cannot have`,
		`a.yaml:16: guards[1] must be fields with values`,
		`a.yaml:17: seeds is "-1", must be a whole number`,
	}, readFaults(t, `service:
  servers: many
  time: lognormal 50ms
  error_rate: 2 %
  speed: 1
load:
  - rate: fast
    timeout: 5
    timeout: 6s
faults: {down: true}
guards:
  -
    name:
    breaker: {latency: perhaps,
              on_change: f}
  - gobreaker
seeds: -1
`))
}

func TestEveryInvalidValueIsNamedWithItsLineAndField(t *testing.T) {
	require.Equal(t, []string{
		`a.yaml:2: service.servers is 0, must be positive`,
		`a.yaml:5: load[0] needs a Rate, or Users and Think`,
		`a.yaml:6: load[0].retries is -1, must be from 0 to 1000`,
		`a.yaml:8: faults[0] is from 9s to 8s, must end after it begins`,
		`a.yaml:11: guards[0].burst is 3, must be 0 without a Rate`,
		`a.yaml:12: guards[0].breaker.failure_rate is 2, must be above 0 and at most 1, or Off`,
		`a.yaml:13: guards[0].breaker.probes is -7, must lie between 1 and 10000`,
		`a.yaml:14: guards[0].throttle.k is 0.5, must be finite and at least 1`,
		`a.yaml:15: guards[1] is named "none", like another one`,
		`a.yaml:16: beside[0] is "hystrix", must be one of `,
	}, cutAt(readFaults(t, `service:
  servers: 0
  time: 5ms
load:
  - timeout: 1s
    retries: -1
faults:
  - {from: 9s, to: 8s}
guards:
  - name: a
    burst: 3
    breaker: {failure_rate: 2,
              probes: -7}
    throttle: {k: 0.5}
  - name: none
beside: [hystrix]
for: 1m
`), "must be one of "))
}

// cutAt cuts what follows after in the last line.
func cutAt(lines []string, after string) []string {
	last := &lines[len(lines)-1]
	if at := strings.Index(*last, after); at >= 0 {
		*last = (*last)[:at+len(after)]
	}
	return lines
}

func TestInvalidYAMLIsAnError(t *testing.T) {
	require.Equal(t, []string{"a.yaml: the file is empty"}, readFaults(t, ""))
	require.Equal(t, []string{"a.yaml: the file has more than one document"}, readFaults(t, "seeds: 1\n---\nseeds: 2"))
	require.Contains(t, readFaults(t, "a: [")[0], "a.yaml: yaml: line 1")
	require.Equal(t, []string{"a.yaml:1: the file must be fields with values"}, readFaults(t, "- 1"))
}
