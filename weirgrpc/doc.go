// Package weirgrpc guards the calls of gRPC clients and servers: it limits them, and stops calling
// what fails.
//
// The calls of a client go through gates: one gate per method, per service or per tenant, or one gate
// for all calls.
//
//	methods := weir.NewGroup[string]("stock", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(200)}})
//	stock := weirgrpc.NewClient(weirgrpc.Per(methods, weirgrpc.ByMethod), weirgrpc.ClientConfig{})
//
//	conn, err := grpc.NewClient(target, creds,
//		grpc.WithChainUnaryInterceptor(stock.Unary),
//		grpc.WithChainStreamInterceptor(stock.Stream))
//
// The calls of a server pass rules, in their order. If a rule refuses a call, what the call took of
// the rules before is given back.
//
//	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{},
//		weirgrpc.Shed(inFlight),                                         // a bound on calls in flight
//		weirgrpc.LimitBy(clients, weirgrpc.ByPeer),                      // one limit per client
//		weirgrpc.Guard(weirgrpc.Per(handlers, weirgrpc.ByMethod))) // one breaker per method
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(shop.Unary),
//		grpc.ChainStreamInterceptor(shop.Stream))
//
// The path of a call:
//
//	 client                                        server
//	call ──► gate ──────────► network ──────────► rules ──────────► handler
//	   ◄──────┤ refused: RefusedError,        ◄─────┤ refused: its     │
//	          │ nothing is sent                     │ status           │
//	          ◄─────────── message or status ───────◄──────────────────┘
//	          │                                     │
//	      records the outcome,                  records the outcome,
//	      obeys a RetryInfo                     releases its slots
//
// # Refusals
//
// A refusal is a status: Unavailable if a breaker is open or a throttle refuses, ResourceExhausted if a
// limit is reached or the service has asked to wait. Its details are a google.rpc.ErrorInfo and, if the wait is known, a
// google.rpc.RetryInfo, for clients in any language. The domain of the ErrorInfo is
// "github.com/weir-go/weir", its reason BREAKER_OPEN, LIMITED, HELD or THROTTLED, and its metadata has
// the name of the breaker or limiter. A server also sends the wait in the trailer grpc-retry-pushback-ms, which the
// retries of gRPC obey. In the process that refused, the error is a [*RefusedError], which matches
// weir.ErrRefused, and breaker.ErrOpen or limiter.ErrLimited.
//
// If OpenTelemetry records a span for the context of the call (a client's is that of its caller), a
// refusal sets attributes on it. [LogRefusedCalls] logs the same:
//
//	weir.refusal.reason                     open, limited, held or throttled
//	weir.breaker.name or weir.limiter.name  what refused
//	weir.group.key                          the key of a breaker of a group
//	weir.retry_after                        seconds, if they are known
//
// # Outcomes
//
// [DefaultClassify] judges calls by their codes: Unavailable, DeadlineExceeded, ResourceExhausted,
// Internal, Unknown and DataLoss are failures, Canceled is ignored, and the others are successes. A
// caller who cancels and a client that goes away are ignored too, whatever the error says. A deadline
// that passes is a failure. When a deadline passes, a server may see either of the two first.
//
// A stream is judged once, by its first message or by its end if that comes first. So a long stream
// does not occupy a probe slot, and a stream that has brought a message counts as a success however it
// ends. A client's stream that is never read is judged when its context is done or its connection is
// closed. Until then it keeps its probe slot, for breaker.Config.ProbeTimeout at most.
//
// # With other interceptors
//
// A client counts a call once, however often the service config retries it. Put weir after an
// interceptor that retries, so that each attempt counts, and is refused while the breaker is open. On a
// server, put weir before authentication to limit by [ByPeer], and behind it to limit by user. It may
// stand before or behind an interceptor that recovers panics, which count as failures either way.
// OpenTelemetry's stats handler runs before the interceptors of a server, so its spans have the
// attributes of refusals.
//
// A gate knows a connection, not the backends that the connection is balanced over: for these there are
// the health checks and the outlier detection of gRPC.
package weirgrpc
