package breaker_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestAClassifierKeepsItsErrors(t *testing.T) {
	known, other := errors.New("known"), errors.New("other")
	for name, c := range map[string]struct {
		of   func(errs ...error) breaker.Classifier
		want breaker.Outcome
	}{
		"Accept":            {breaker.Accept, breaker.Success},
		"Ignore":            {breaker.Ignore, breaker.Ignored},
		"FailOn":            {breaker.FailOn, breaker.Failure},
		"Classifier.Accept": {breaker.Ignore().Accept, breaker.Success},
		"Classifier.Ignore": {breaker.Accept().Ignore, breaker.Ignored},
	} {
		errs := []error{known}
		classify := c.of(errs...)
		errs[0] = other // the slice is the caller's
		require.Equal(t, c.want, classify(known), name)
	}
}
