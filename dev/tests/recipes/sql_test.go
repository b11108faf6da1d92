package recipes_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/inflight"
)

// openDatabase returns a database with one user.
func openDatabase(t *testing.T, driver, source string) *recipes.Database {
	t.Helper()
	pool, err := sql.Open(driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	_, err = pool.ExecContext(t.Context(), "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
	require.NoError(t, err)
	d := recipes.NewDatabase(pool)
	require.NoError(t, addUser(t, d, 1, "Ada"))
	return d
}

func addUser(t *testing.T, d *recipes.Database, id int, name string) error {
	t.Helper()
	_, err := recipes.Query(t.Context(), d, func(ctx context.Context, pool *sql.DB) (sql.Result, error) {
		return pool.ExecContext(ctx, "INSERT INTO users (id, name) VALUES ($1, $2)", id, name)
	})
	return err
}

// requireAnswers makes calls that the database answers, many of them with an error.
func requireAnswers(t *testing.T, d *recipes.Database) {
	t.Helper()
	for range 50 {
		name, err := d.UserName(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, "Ada", name)
		_, err = d.UserName(t.Context(), 2)
		require.ErrorIs(t, err, sql.ErrNoRows)
		require.Error(t, addUser(t, d, 1, "Bob"), "the ID is taken")
	}
	require.Zero(t, d.Gate.Totals().Failures)
	require.EqualValues(t, 151, d.Gate.Totals().Successes)
}

func TestAnswersOfSQLiteAreNoFailures(t *testing.T) {
	requireAnswers(t, openDatabase(t, "sqlite", filepath.Join(t.TempDir(), "users.db")))
}

func TestAFileThatIsNoDatabaseIsAFailure(t *testing.T) {
	pool, err := sql.Open("sqlite", "sql.go")
	require.NoError(t, err)
	defer func() { _ = pool.Close() }()
	d := recipes.NewDatabase(pool)
	_, err = d.UserName(t.Context(), 1)
	require.ErrorContains(t, err, "file is not a database")
	require.EqualValues(t, 1, d.Gate.Totals().Failures)
}

func TestAFullPoolRefusesCalls(t *testing.T) {
	d := openDatabase(t, "sqlite", filepath.Join(t.TempDir(), "users.db"))
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for range recipes.MaxConns {
		go func() {
			_, err := recipes.Query(context.WithoutCancel(t.Context()), d, func(ctx context.Context, pool *sql.DB) (int, error) {
				conn, err := pool.Conn(ctx)
				begun <- struct{}{}
				<-end
				return 0, errors.Join(err, conn.Close())
			})
			ended <- err
		}()
	}
	for range recipes.MaxConns {
		<-begun
	}
	_, err := d.UserName(t.Context(), 1)
	require.ErrorIs(t, err, inflight.ErrFull)
	close(end)
	for range recipes.MaxConns {
		require.NoError(t, <-ended)
	}
	require.Zero(t, d.Gate.Totals().Failures)
}
