package weir_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// classifySQL is a breaker.Config.Classify for database/sql. A database that finds no row, or that
// refuses a row because of a constraint, works.
//
// The errors of the PostgreSQL drivers pgx and lib/pq have a method SQLState. Class 22 is invalid
// data, 23 a violated constraint such as UNIQUE, and 40 a transaction to be retried. For MySQL,
// compare the Number of a *mysql.MySQLError with 1062. For SQLite, compare the Code
// (modernc.org/sqlite) or the ExtendedCode (mattn/go-sqlite3).
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

// pgError is like the error of a PostgreSQL driver.
type pgError struct{ code string }

func (e *pgError) Error() string    { return "pq: " + e.code }
func (e *pgError) SQLState() string { return e.code }

// Violations of UNIQUE and missing rows do not open the breaker. A database that shuts down does.
func ExampleConfig_database() {
	db := weir.New("db", weir.Config{Breaker: breaker.Config{Classify: classifySQL}})
	insert := func(context.Context) error { return fmt.Errorf("insert: %w", &pgError{"23505"}) }
	find := func(context.Context) error { return sql.ErrNoRows }
	down := func(context.Context) error { return &pgError{"57P01"} } // admin shutdown
	for range 30 {
		_ = db.Run(context.Background(), insert)
		_ = db.Run(context.Background(), find)
	}
	fmt.Println(db.Breaker().State(), db.Breaker().Counts().Failures)
	for range 60 {
		_ = db.Run(context.Background(), down)
	}
	fmt.Println(db.Breaker().State())
	// Output:
	// closed 0
	// open
}
