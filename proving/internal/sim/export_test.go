package sim

import "os"

// long runs the tests whole, as make test-long does. They take up to 10 s each.
var long = os.Getenv("WEIR_LONG") == "true"

// Long is long, for tests of other packages.
var Long = long
