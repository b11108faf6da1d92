package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"

	_ "embed"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

// standardConfig is the configuration for a run of ten seconds.
//
//go:embed weir.yaml
var standardConfig string

// clampRun returns the length of a run that all durations are derived from. A real service would
// use tens of seconds and minutes. Here a whole outage must fit into a few seconds.
func clampRun(run time.Duration) time.Duration { return min(max(run, time.Second), time.Minute) }

var durationPattern = regexp.MustCompile(`\b\d+(ms|s)\b`)

// configText returns the configuration for the length of a run.
func configText(run time.Duration) string {
	return durationPattern.ReplaceAllStringFunc(standardConfig, func(text string) string {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err) // the pattern matches nothing else
		}
		return (d / 100 * (clampRun(run) / (100 * time.Millisecond))).String()
	})
}

// settings are the objects of a configuration file, which can be edited during the run.
type settings struct {
	*weirconfig.Set
	path string
}

// newSettings writes the configuration to a new file and makes its objects.
func newSettings(run time.Duration, onChange func(breaker.Change), tell alert.Notifier) (*settings, error) {
	dir, err := os.MkdirTemp("", "storefront")
	if err != nil {
		return nil, err
	}
	s := &settings{path: filepath.Join(dir, "weir.yaml")}
	if err = s.write(configText(run)); err == nil {
		err = s.load(weirconfig.Config{
			Gate:   func(_ string, c *weir.Config) { c.Breaker.OnChange = onChange },
			Notify: []alert.Notifier{tell},
		})
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *settings) write(text string) error { return os.WriteFile(s.path, []byte(text), 0o600) }

func (s *settings) load(c weirconfig.Config) error {
	file, err := weirconfig.Load(s.path)
	if err != nil {
		return err
	}
	s.Set, err = weirconfig.New(file, c)
	return err
}

var ratePattern = regexp.MustCompile(`rate: (\d+/s)`)

// changeRate changes the file as an operator would. It returns the previous rate.
func (s *settings) changeRate(to string) (from string, err error) {
	text, err := os.ReadFile(s.path)
	if err != nil {
		return "", err
	}
	found := ratePattern.FindSubmatch(text)
	if found == nil {
		return "", errors.New("the file has no rate")
	}
	if err := s.write(ratePattern.ReplaceAllString(string(text), "rate: "+to)); err != nil {
		return "", err
	}
	file, err := weirconfig.Load(s.path)
	if err != nil {
		return "", err
	}
	return string(found[1]), s.Update(file) // Watch would do it within 4 s
}

// remove removes the file.
func (s *settings) remove() { _ = os.RemoveAll(filepath.Dir(s.path)) }

// deadline returns the longest time that a payment may take.
func deadline(run time.Duration) time.Duration { return min(clampRun(run)/25, 200*time.Millisecond) }

// exportEvery returns the interval of the exports through OpenTelemetry.
func exportEvery(run time.Duration) time.Duration { return clampRun(run) / 10 }
