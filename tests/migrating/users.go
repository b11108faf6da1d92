package migrating

import (
	"context"
	"errors"
)

// User is what the program asks for.
type User struct{ ID int }

// ErrNotFound says that there is no such user: the service has done its work.
var ErrNotFound = errors.New("no such user")

// ErrUnavailable is what the program makes of a call that was not let through.
var ErrUnavailable = errors.New("users are not to be had now")

// fetch asks the service.
type fetch func(ctx context.Context, id int) (*User, error)
