package recipes

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/weir-go/weir/admin"
)

//readme:serve

// Serve serves until ctx is done, and then drains. ctx is that of signal.NotifyContext for SIGTERM.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, health *admin.Health) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 25*time.Second)
		defer cancel()
		return health.Drain(stop, server.Shutdown)
	}
}

//readme:end

// Routes adds the readiness to the routes of a service.
func Routes(mux *http.ServeMux, health *admin.Health) {
	//readme:ready
	mux.Handle("/health/", http.StripPrefix("/health", health)) // GET /health/ready
	//readme:end
}
