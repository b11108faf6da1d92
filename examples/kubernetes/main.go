// Command kubernetes is a service that runs in Kubernetes. A ConfigMap, which can change,
// configures it. The service says whether it is ready, and stops without losing a request.
// docs/kubernetes.md has the manifest.
//
//	kubernetes -config weir.yaml -payments http://127.0.0.1:9000/charge
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/weirconfig"
	"github.com/weir-go/weir/weirhttp"
)

func main() {
	var o options
	flag.StringVar(&o.config, "config", "/etc/shop/weir.yaml", "the configuration `file`, of a ConfigMap")
	flag.StringVar(&o.payments, "payments", "", "the `URL` of the payment service")
	flag.StringVar(&o.listen, "listen", ":8080", "the `address` for customers")
	flag.StringVar(&o.internal, "internal", ":9090", "the `address` of /health/ and /metrics")
	flag.DurationVar(&o.drain, "drain", 5*time.Second, "how long to serve on after SIGTERM, until no new requests come")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// options holds the flags.
type options struct {
	config, payments, listen, internal string
	drain                              time.Duration
}

// stopTimeout is how long it may take to stop. terminationGracePeriodSeconds is longer.
const stopTimeout = 25 * time.Second

// run serves until ctx is done, and then stops.
func run(ctx context.Context, o options) error {
	file, err := weirconfig.Load(o.config)
	if err != nil {
		return err
	}
	set, err := weirconfig.New(file, weirconfig.Config{})
	if err != nil {
		return err
	}
	ctx, stopped := context.WithCancel(ctx)
	defer stopped()
	go set.Watch(ctx)
	go set.Monitor().Run(ctx)

	health, err := admin.NewHealth(admin.HealthConfig{DrainDelay: o.drain}, set)
	if err != nil {
		return err
	}
	//readme:metrics
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(set))
	//readme:end
	internal := http.NewServeMux()
	internal.Handle("/health/", http.StripPrefix("/health", health))
	internal.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	customers := serve(o.listen, set.Limit("api").Handler(paymentHandler(set, o.payments)))
	inside := serve(o.internal, internal)
	select {
	case err = <-customers.failed:
	case err = <-inside.failed:
	case <-ctx.Done():
	}
	stopped()
	stopping, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(err, health.Drain(stopping, customers.Shutdown, set.Monitor().Flush, inside.Shutdown))
}

// server is a running server.
type server struct {
	*http.Server
	failed chan error // gets the error of a server that cannot serve
}

func serve(addr string, h http.Handler) server {
	s := server{&http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 5 * time.Second}, make(chan error, 1)}
	go func() {
		if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
	return s
}

// paymentHandler returns a handler that makes one payment for each request.
func paymentHandler(set *weirconfig.Set, payments string) http.Handler {
	client := &http.Client{
		Transport: weirhttp.NewTransport(weirhttp.ForAll(set.Gate("payments")), weirhttp.TransportConfig{}),
		Timeout:   10 * time.Second,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, payments, http.NoBody)
		if err != nil {
			http.Error(w, "the shop is not set up", http.StatusInternalServerError)
			return
		}
		response, err := client.Do(request)
		if err != nil {
			http.Error(w, "the payment failed, try again later", http.StatusServiceUnavailable)
			return
		}
		defer response.Body.Close()
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	})
}
