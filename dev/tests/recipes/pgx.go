package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// Accounts are accounts in a database behind a gate.
type Accounts struct {
	Pool *pgxpool.Pool
	Gate *weir.Gate
}

//readme:pgx

// NewAccounts returns the accounts in the database of the pool.
func NewAccounts(pool *pgxpool.Pool) *Accounts {
	return &Accounts{pool, weir.New("accounts", weir.Config{
		MaxConcurrent: int(pool.Config().MaxConns), // so no call waits in the pool for a connection
		MaxWait:       100 * time.Millisecond,
		Breaker:       breaker.Config{Classify: ClassifyPostgres},
	})}
}

// Balance returns the balance of an account.
func (a *Accounts) Balance(ctx context.Context, id int) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return weir.Do(ctx, a.Gate, func(ctx context.Context) (int64, error) {
		rows, _ := a.Pool.Query(ctx, "SELECT balance FROM accounts WHERE id = $1", id)
		return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]) // or the error of Query
	})
}

//readme:end

//readme:pgx-classify

// ClassifyPostgres counts the errors that a working server answers with as successes.
func ClassifyPostgres(err error) breaker.Outcome {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && len(e.Code) == 5 {
		switch e.Code[:2] {
		case "22", "23", "40", "42", "P0": // data, constraint, conflict, wrong query, RAISE
			return breaker.Success
		case "53": // too many clients, or no memory or disk left
			return breaker.Overloaded
		}
	}
	return breaker.Accept(pgx.ErrNoRows)(err)
}

//readme:end
