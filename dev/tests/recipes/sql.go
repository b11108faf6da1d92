package recipes

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

//readme:sql-gate

// MaxConns is the number of connections of a Database.
const MaxConns = 20

// Database is a database behind a gate.
type Database struct {
	Pool *sql.DB
	Gate *weir.Gate
}

// NewDatabase puts a gate in front of the pool.
func NewDatabase(pool *sql.DB) *Database {
	pool.SetMaxOpenConns(MaxConns)
	return &Database{pool, weir.New("database", weir.Config{
		MaxConcurrent: MaxConns, // so no call waits in the pool for a connection
		MaxWait:       100 * time.Millisecond,
		Breaker:       breaker.Config{Classify: ClassifySQL},
	})}
}

//readme:end

//readme:sql-query

// Query gives fn the pool for up to one second. fn must read and close the rows that it gets.
func Query[T any](ctx context.Context, d *Database, fn func(context.Context, *sql.DB) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return weir.Do(ctx, d.Gate, func(ctx context.Context) (T, error) { return fn(ctx, d.Pool) })
}

// UserName returns the name of a user, or sql.ErrNoRows.
func (d *Database) UserName(ctx context.Context, id int) (string, error) {
	return Query(ctx, d, func(ctx context.Context, pool *sql.DB) (name string, err error) {
		err = pool.QueryRowContext(ctx, "SELECT name FROM users WHERE id = $1", id).Scan(&name)
		return name, err
	})
}

//readme:end

//readme:sql-classify

// ClassifySQL counts the errors that a working database answers with as successes.
func ClassifySQL(err error) breaker.Outcome {
	type sqlState interface {
		error
		SQLState() string // pgx and lib/pq have it
	}
	if e, ok := errors.AsType[sqlState](err); ok && len(e.SQLState()) == 5 {
		switch e.SQLState()[:2] {
		case "22", "23", "40", "42": // data, constraint, conflict, wrong query
			return breaker.Success
		}
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT {
		return breaker.Success
	}
	return breaker.Accept(sql.ErrNoRows)(err)
}

//readme:end
