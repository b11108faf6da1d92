// Command weirconfig checks files of package weirconfig.
//
//	weirconfig check FILE...
//
// It prints each fault as "file:line: object: fault" on standard output. The exit status is 0 if
// all files are valid, 1 if a file is invalid or cannot be read, and 2 for a wrong command line.
//
// The command looks up references such as ${NAME} in the same way as the program does when it
// starts. Where the secrets are not known, as in CI, set the variables to values of the same form:
//
//	SLACK_URL=https://example.com go tool weirconfig check weir.yaml
//
// To install the command for a module that uses weirconfig:
//
//	go get -tool github.com/weir-go/weir/weirconfig/cmd/weirconfig
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/weirconfig"
)

func main() {
	if status := run(os.Args[1:], os.Stdout, os.Stderr); status != 0 {
		os.Exit(status)
	}
}

const usage = "usage: weirconfig check FILE...\n"

func run(args []string, out, errOut io.Writer) int {
	if len(args) < 2 || args[0] != "check" {
		fmt.Fprint(errOut, usage)
		return 2
	}
	status := 0
	for _, path := range args[1:] {
		if _, err := weirconfig.Load(path); err != nil {
			fmt.Fprintln(out, err)
			status = 1
		}
	}
	return status
}
