package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/modules"
	"github.com/weir-go/weir/dev/tools/internal/smallrepo"
)

// hangingTest starts a program that ignores interrupts, and waits for ever.
const hangingTest = `package weir

import (
	"os/exec"
	"testing"
)

func TestHangs(*testing.T) {
	_ = exec.Command("sh", "-c", "trap '' INT; exec sleep 3600 >started").Run()
	select {}
}
`

// The program holds the only writing end of a pipe, so the end of the pipe shows that it has ended.
func TestAnInterruptEndsTheProgramsOfTests(t *testing.T) {
	root := smallrepo.New(t)
	smallrepo.Write(t, root, "weir_test.go", hangingTest)
	started := filepath.Join(root, "started")
	require.NoError(t, syscall.Mkfifo(started, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- run(ctx, options{root: root, jobs: 1}, nil, t.Output()) }()
	pipe, err := os.Open(started)
	require.NoError(t, err)
	defer func() { require.NoError(t, pipe.Close()) }()

	interrupt()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = io.ReadAll(pipe)
	require.NoError(t, err)
}

func TestTheErrorNamesTheModulesThatFail(t *testing.T) {
	root := smallrepo.New(t)
	smallrepo.Write(t, root, "extra/extra_test.go", "package extra\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Fatal(1) }\n")
	require.EqualError(t, run(t.Context(), options{root: root, jobs: 1}, nil, t.Output()), "module extra: exit status 1")
}

func TestSlowModulesStartFirst(t *testing.T) {
	list := []modules.Module{{Dir: "."}, {Dir: "bench"}, {Dir: "fleet"}, {Dir: "tests"}}
	var dirs []string
	for _, m := range order(list, []string{"fleet", "."}) {
		dirs = append(dirs, m.Dir)
	}
	require.Equal(t, []string{"fleet", ".", "bench", "tests"}, dirs)
}

func TestOnlyModulesOfNoraceAreTestedWithoutTheRaceDetector(t *testing.T) {
	o := options{norace: []string{"proving"}}
	flags := []string{"-race", "-shuffle=on"}
	require.Equal(t, []string{"-shuffle=on"}, o.flagsOf(modules.Module{Dir: "proving"}, flags))
	require.Equal(t, flags, o.flagsOf(modules.Module{Dir: "."}, flags))
	require.Equal(t, []string{"-race", "-shuffle=on"}, flags, "unchanged")
}

func TestADirectoryWithoutAModuleIsAnError(t *testing.T) {
	for _, o := range []options{{root: "../../..", first: []string{"flet"}}, {root: "../../..", norace: []string{"proof"}}} {
		require.ErrorContains(t, run(t.Context(), o, nil, t.Output()), "no module in directory")
	}
}
