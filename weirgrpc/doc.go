// Package weirgrpc guards the calls of gRPC clients and servers: it throttles them, and
// stops what fails.
//
// A client's calls go through gates, one for each method, service or target, one of a
// group by a key of yours, or one for all:
//
//	stock := weirgrpc.NewClient(weirgrpc.PerMethod("stock", weir.Config{Rate: limiter.PerSecond(200)}), weirgrpc.ClientConfig{})
//
//	conn, err := grpc.NewClient(target, creds,
//		grpc.WithChainUnaryInterceptor(stock.Unary),
//		grpc.WithChainStreamInterceptor(stock.Stream))
//
// A server's calls pass rules, in their order; what a call took of them is given back
// if a later one refuses it:
//
//	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{},
//		weirgrpc.NewShed("in flight", inFlight),           // beyond so many at once
//		weirgrpc.LimitBy(clients, weirgrpc.ByPeer),        // beyond a limit for each client
//		weirgrpc.Guard(weirgrpc.PerMethod("shop", weir.Config{}))) // while a handler fails
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(shop.Unary),
//		grpc.ChainStreamInterceptor(shop.Stream))
//
// The way of a call:
//
//	 client                                        server
//	call ──► gate ──────────► network ──────────► rules ──────────► handler
//	   ◄──────┤ refused: RefusedError,        ◄─────┤ refused: its     │
//	          │ nothing is sent                     │ status           │
//	          ◄─────────── message or status ───────◄──────────────────┘
//	          │                                     │
//	      books the outcome,                    books the outcome,
//	      keeps to a RetryInfo                  gives places back
//
// # Refusals
//
// A refusal is a status: Unavailable where a breaker is open, ResourceExhausted where a
// limit is reached or the service has asked to wait. Its details are a google.rpc.ErrorInfo,
// with [ErrorDomain] and the name of what refused, and a google.rpc.RetryInfo where it is
// known when to come back, for clients in any language. A server also sends the wait in the
// trailer grpc-retry-pushback-ms, which gRPC's own retries obey. In the process that refused,
// the error is a [*RefusedError] and matches breaker.ErrOpen or limiter.ErrLimited, and weir.ErrRefused.
//
// Where OpenTelemetry records a span for the context of the call (a client's is that of
// its caller), a refusal sets attributes on it; [LogRefusedCalls] writes the same:
//
//	weir.refusal.reason                     open, limited or held
//	weir.breaker.name or weir.limiter.name  what refused
//	weir.group.key                          the key of a breaker of a group
//	weir.retry_after                        seconds, where they are known
//
// # Outcomes
//
// [Classify] judges calls by their codes: Unavailable, DeadlineExceeded,
// ResourceExhausted, Internal, Unknown and DataLoss are failures, Canceled tells nothing,
// and the others are successes. A caller who cancels, and a client that goes away, tell
// nothing either, whatever the error says; a deadline that passes is a failure. When a
// deadline is over a server may hear first of the one or of the other.
//
// A stream is judged once, by its first message or by its end where that comes first: one
// that goes on for days does not hold the place of a probe, and one that has brought
// something counts as a success however it ends. A client's stream that is never read is
// judged when gRPC gives it up, that is when its context is done or its connection
// closed; until then it keeps its place, for breaker.Config.ProbeTimeout at most.
//
// # With other interceptors
//
// A client counts a call once, whatever retries the service config makes it. Beside an
// interceptor that retries put weir after it in the chain, so that each attempt counts and
// is refused while the breaker is open. On a server put it before what authenticates, to
// limit by [ByPeer], or behind, to limit by who it is; and behind what recovers panics, or
// before: they count as failures either way. OpenTelemetry's stats handler runs before a
// server's interceptors, so refusals are told in its spans.
//
// A gate knows a connection, not the backends that it balances between: health checks and
// outlier detection are gRPC's own.
package weirgrpc
