package weirconfig_test

import (
	"fmt"
	"os"

	"github.com/weir-go/weir/weirconfig"
)

// A file can be logged: its content, which may hold secrets, is not shown.
func ExampleFile() {
	if err := os.Setenv("PAGER_URL", "https://pager.example/secret"); err != nil {
		panic(err)
	}
	file, err := weirconfig.Parse("weir.yaml", []byte(`sinks: {pager: {kind: webhook, url: "${PAGER_URL}"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", file)
	// Output: weirconfig.File{weir.yaml}
}

// A set has an object for each name of the file. Sources returns all of them for an exporter.
func ExampleSet() {
	file, err := weirconfig.Parse("weir.yaml", []byte("gates: {payments: {rate: 100/s}, ledger: {}}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := weirconfig.New(file, weirconfig.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Gate("payments").Name(), len(set.Sources()))
	// Output: payments 4
}
