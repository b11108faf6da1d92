package rows

import (
	"context"
	"errors"
)

// The calls that are guarded: they cost nothing themselves. Their value tells whether they were made.

var errDown = errors.New("down")

func succeed(context.Context) (int, error) { return 1, nil }

func fail(context.Context) (int, error) { return -1, errDown }

func succeedBare() (int, error) { return 1, nil }

func failBare() (int, error) { return -1, errDown }

func succeedQuietly(context.Context) error { return nil }

func succeedBarely() error { return nil }
