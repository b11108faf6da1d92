package migrating

import (
	"context"
	"errors"
)

// User is a user of the service.
type User struct{ ID int }

// ErrNotFound means that there is no such user. It is a valid answer of the service.
var ErrNotFound = errors.New("no such user")

// ErrUnavailable replaces the error of a refused call.
var ErrUnavailable = errors.New("users are unavailable")

// fetch fetches a user from the service.
type fetch func(ctx context.Context, id int) (*User, error)
