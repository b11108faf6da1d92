package sim

import "github.com/weir-go/weir/internal/testenv"

// long runs the tests whole, as make test-long does. They take up to 10 s each.
var long = testenv.Soak()

// Long is long, for tests of other packages.
var Long = long
