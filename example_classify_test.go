package weir_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// classifySQL is a breaker.Config.Classify for database/sql. A database that finds no row, or refuses a row that is
// there already, has done its work: it is well, and only the question was wrong.
//
// The drivers of PostgreSQL have SQLState; class 22 is data that does not fit, 23 a constraint such as UNIQUE, 40 a
// transaction that must be tried again. For MySQL ask for a *mysql.MySQLError and its Number 1062, for SQLite for the
// Code of modernc.org/sqlite or the ExtendedCode of mattn/go-sqlite3.
func classifySQL(err error) breaker.Outcome {
	if errors.Is(err, sql.ErrNoRows) {
		return breaker.Success
	}
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok && len(e.SQLState()) == 5 {
		switch e.SQLState()[:2] {
		case "22", "23", "40":
			return breaker.Success
		}
	}
	return breaker.DefaultClassify(err)
}

// pgError is like the errors of pgx and lib/pq.
type pgError struct{ code string }

func (e *pgError) Error() string    { return "pq: " + e.code }
func (e *pgError) SQLState() string { return e.code }

// Thirty users ask for a name that is taken, and thirty for what is not there: the database is well.
func ExampleConfig_database() {
	db := weir.New("db", weir.Config{Breaker: breaker.Config{Classify: classifySQL}})
	insert := func(context.Context) error { return fmt.Errorf("insert: %w", &pgError{"23505"}) }
	find := func(context.Context) error { return sql.ErrNoRows }
	down := func(context.Context) error { return &pgError{"57P01"} } // admin shutdown
	for range 30 {
		_ = db.Run(context.Background(), insert)
		_ = db.Run(context.Background(), find)
	}
	fmt.Println(db.State(), db.Counts().Failures)
	for range 60 {
		_ = db.Run(context.Background(), down)
	}
	fmt.Println(db.State())
	// Output:
	// closed 0
	// open
}
