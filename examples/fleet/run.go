package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const processes = 3

// run starts everything, waits until the run is over or the context is done, and writes the totals.
func run(ctx context.Context, o options, out io.Writer) error {
	address := o.redis
	if address == "" {
		var stop func()
		var err error
		if address, stop, err = startRedis(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		defer stop()
	}
	start := time.Now()
	service := newService(schedule{start, o.run})
	defer service.Close()
	fmt.Fprintf(out, "each of %d processes offers %d payments per second; the limit allows %d in total\n", processes, offeredRate, totalRate)
	ctx, cancel := context.WithTimeout(ctx, o.run)
	defer cancel()
	f := &fleetRun{collector: newCollector(), start: start, out: out}
	if err := f.wait(ctx, address, service.URL); err != nil {
		return err
	}
	line, err := json.Marshal(f.collector.sum)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

// fleetRun is one run of all processes.
type fleetRun struct {
	collector *collector
	start     time.Time

	mu  sync.Mutex
	out io.Writer
}

// wait starts the processes and waits until all have ended.
func (f *fleetRun) wait(ctx context.Context, address, url string) error {
	var running sync.WaitGroup
	errs := make([]error, processes)
	for i := range processes {
		running.Go(func() { errs[i] = f.process(ctx, i, address, url) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// process runs one process, and ends it by closing its standard input.
func (f *fleetRun) process(ctx context.Context, i int, address, url string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), self, nodeWord, address, url)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err = c.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = stdin.Close() })
	defer stop()
	err = f.listen(i, stdout)
	return errors.Join(err, c.Wait())
}

// listen reads the messages of a process.
func (f *fleetRun) listen(i int, from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		f.collector.add(i, m)
		if m.Text != "" {
			f.mu.Lock()
			fmt.Fprintf(f.out, "%6.2fs  process %d: %s\n", time.Since(f.start).Seconds(), i+1, m.Text)
			f.mu.Unlock()
		}
	}
	return lines.Err()
}
