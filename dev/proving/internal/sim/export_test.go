package sim

import "github.com/weir-go/weir/internal/testenv"

// runLong runs the tests whole, as make test-long does. They take up to 10 s each.
var runLong = testenv.Soak()

// Long exports runLong to the tests of other packages.
var Long = runLong
