package admin_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
)

// The program is ready while its mail service fails, and not ready while its database does.
func ExampleHealth() {
	database, mail := weir.New("database", weir.Config{}), weir.New("mail", weir.Config{})
	health, err := admin.NewHealth(admin.HealthConfig{NotReady: []string{"database"}}, database, mail)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/health/", http.StripPrefix("/health", health))

	ready := func() int {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health/ready", http.NoBody))
		return w.Code
	}
	mail.Breaker().OpenFor(time.Minute)
	fmt.Println(ready())
	database.Breaker().OpenFor(time.Minute)
	fmt.Println(ready())
	// Output:
	// 200
	// 503
}

// A program drains when it is told to stop.
func ExampleHealth_Drain() {
	health, err := admin.NewHealth(admin.HealthConfig{DrainDelay: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: health, ReadHeaderTimeout: time.Second}
	//readme:drain
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := health.Drain(ctx, server.Shutdown); err != nil {
		log.Print(err)
	}
	//readme:end
	fmt.Println("stopped")
	// Output: stopped
}

func ExampleHealthConfig() {
	_, err := admin.NewHealth(admin.HealthConfig{NotReady: []string{"databse"}}, weir.New("database", weir.Config{}))
	fmt.Println(err)
	// Output: admin: NotReady has "databse", which is not a gate or breaker of the sources
}
