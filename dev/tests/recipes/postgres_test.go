package recipes_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/testenv"
)

// Both recipes use one server, because it takes seconds to create one.
func TestPostgreSQLBehindAGate(t *testing.T) {
	s := newPostgres(t)
	t.Run("database/sql", func(t *testing.T) { tryPostgresWithSQL(t, s) })
	t.Run("pgx", func(t *testing.T) { tryPostgresWithPgx(t, s) })
}

func tryPostgresWithSQL(t *testing.T, s *server) {
	d := openDatabase(t, "pgx", postgresURL(s.addr))
	requireAnswers(t, d)
	_, err := recipes.Query(t.Context(), d, func(ctx context.Context, pool *sql.DB) (sql.Result, error) {
		return pool.ExecContext(ctx, "SELECT * FROM missing")
	})
	require.ErrorContains(t, err, "42P01")
	require.Zero(t, d.Gate.Totals().Failures, "a wrong query is no failure")

	hang := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := recipes.Query(ctx, d, func(ctx context.Context, pool *sql.DB) (sql.Result, error) {
			return pool.ExecContext(ctx, "SELECT pg_sleep(60)")
		})
		return err
	}
	require.ErrorIs(t, hang(), context.DeadlineExceeded) // the breaker does not know when it began
	var before int64
	testenv.Undisturbed(time.Second/2, func() {
		before = d.Gate.Totals().Failures
		require.ErrorIs(t, hang(), context.DeadlineExceeded)
	})
	require.Equal(t, before+1, d.Gate.Totals().Failures, "a query that lasts until its deadline is a failure")

	requireOutage(t, s, d.Gate, func() error {
		_, err := d.UserName(t.Context(), 1)
		return err
	})
}

func tryPostgresWithPgx(t *testing.T, s *server) {
	ctx := t.Context()
	config, err := pgxpool.ParseConfig(postgresURL(s.addr))
	require.NoError(t, err)
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(ctx, "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance BIGINT CHECK (balance >= 0))")
	require.NoError(t, err)
	_, err = pool.Exec(ctx, "INSERT INTO accounts VALUES (1, 100)")
	require.NoError(t, err)

	a := recipes.NewAccounts(pool)
	exec := func(query string) error {
		return a.Gate.Run(ctx, func(ctx context.Context) error {
			_, err := pool.Exec(ctx, query)
			return err
		})
	}
	balance, err := a.Balance(ctx, 1)
	require.NoError(t, err)
	require.EqualValues(t, 100, balance)
	_, err = a.Balance(ctx, 2)
	require.ErrorIs(t, err, pgx.ErrNoRows)
	for query, state := range map[string]string{
		"INSERT INTO accounts VALUES (1, 100)":        "23505",
		"UPDATE accounts SET balance = balance - 200": "23514",
		"SELECT 1/0":                            "22012",
		"SELECT * FROM missing":                 "42P01",
		"DO $$ BEGIN RAISE 'no credit'; END $$": "P0001",
	} {
		require.ErrorContains(t, exec(query), state)
	}
	require.Equal(t, [2]int64{7, 0}, [2]int64{a.Gate.Totals().Successes, a.Gate.Totals().Failures})
	require.ErrorContains(t, exec("SET statement_timeout = 1; SELECT pg_sleep(60)"), "57014")
	require.EqualValues(t, 1, a.Gate.Totals().Failures, "a query that is too slow for the server is a failure")

	requireFullPool(t, a)
	// a test of its own, whose cleanup closes the connections
	t.Run("full", func(t *testing.T) { requireFullServer(t, s) })
	requireOutage(t, s, a.Gate, func() error {
		_, err := a.Balance(ctx, 1)
		return err
	})
}

// requireFullPool acquires all connections. The gate of the recipe then refuses a call. Without its
// bound, a call waits in the pool until its deadline, and counts as a failure.
func requireFullPool(t *testing.T, a *recipes.Accounts) {
	t.Helper()
	ctx := t.Context()
	before := a.Gate.Totals().Failures
	begun, end, ended := make(chan error), make(chan struct{}), make(chan error, a.Pool.Config().MaxConns)
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release) // before Pool.Close, which waits for the connections
	for range a.Pool.Config().MaxConns {
		go func() {
			ended <- a.Gate.Run(ctx, func(ctx context.Context) error {
				conn, err := a.Pool.Acquire(ctx)
				begun <- err
				<-end
				conn.Release()
				return err
			})
		}()
		require.NoError(t, <-begun)
	}
	_, err := a.Balance(ctx, 1)
	require.ErrorIs(t, err, inflight.ErrFull)
	require.Equal(t, before, a.Gate.Totals().Failures)

	unbounded := &recipes.Accounts{Pool: a.Pool}
	testenv.Undisturbed(time.Second/2, func() {
		unbounded.Gate = weir.New("unbounded", weir.Config{})
		_, err = unbounded.Balance(ctx, 1)
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, 1, unbounded.Gate.Totals().Failures)
	release()
	for range a.Pool.Config().MaxConns {
		require.NoError(t, <-ended)
	}
}

// requireFullServer opens connections until the server refuses one.
func requireFullServer(t *testing.T, s *server) {
	t.Helper()
	for range maxClients + 1 {
		conn, err := pgconn.Connect(t.Context(), postgresURL(s.addr))
		if err != nil {
			require.ErrorContains(t, err, "53300")
			require.Equal(t, breaker.Overloaded, recipes.ClassifyPostgres(err))
			return
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	}
	t.Fatal("the server refuses no connection")
}

// requireOutage kills the server behind a gate and starts it again.
func requireOutage(t *testing.T, s *server, gate *weir.Gate, call func() error) {
	t.Helper()
	s.kill()
	var err error
	calls := 0
	for ; calls < 100 && !errors.Is(err, weir.ErrRefused); calls++ {
		err = call()
		require.Error(t, err)
	}
	require.ErrorIs(t, err, breaker.ErrOpen, "after %d calls", calls)

	s.start(t)
	require.Eventually(t, func() bool { return call() == nil }, time.Minute, 10*time.Millisecond, "the gate allows no call again")
	require.Contains(t, []breaker.State{breaker.HalfOpen, breaker.Recovering}, gate.Breaker().State())
}
