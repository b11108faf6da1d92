package rows

import (
	"context"
	"errors"
)

// The guarded functions do nothing. Their result shows that they were called.

var errDown = errors.New("down")

func succeed(context.Context) (int, error) { return 1, nil }

func fail(context.Context) (int, error) { return -1, errDown }

func succeedBare() (int, error) { return 1, nil }

func failBare() (int, error) { return -1, errDown }

func succeedQuietly(context.Context) error { return nil }

func succeedBarely() error { return nil }
