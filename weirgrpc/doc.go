// Package weirgrpc limits and guards the calls of gRPC clients and servers.
//
// A [Client] makes calls through gates, here one gate per method:
//
//	methods := weir.NewGroup[string]("stock", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(200)}})
//	stock := weirgrpc.NewClient(weirgrpc.Per(methods, weirgrpc.ByMethod), weirgrpc.ClientConfig{})
//
//	conn, err := grpc.NewClient(target, creds,
//		grpc.WithChainUnaryInterceptor(stock.Unary),
//		grpc.WithChainStreamInterceptor(stock.Stream))
//
// A [Server] asks rules about each call, in their order:
//
//	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{},
//		weirgrpc.Shed(inFlight, nil),                              // limits the calls in flight
//		weirgrpc.LimitBy(clients, weirgrpc.ByPeer),                // one rate limit per client
//		weirgrpc.Guard(weirgrpc.Per(handlers, weirgrpc.ByMethod))) // one breaker per method
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(shop.Unary),
//		grpc.ChainStreamInterceptor(shop.Stream))
//
// The path of a call:
//
//	 client                                       server
//	call ──► gate ─────────► network ──────────► rules ──────────► handler
//	   ◄──────┤ refused: RefusedError,        ◄────┤ refused: the
//	          │ nothing is sent                    │ status of a
//	          │                                    │ RefusedError
//	          ◄────────── message or status ───────◄──────────────────┘
//	          │                                    │
//	      records the outcome,                 records the outcome,
//	      obeys a RetryInfo                    releases its slots
//
// # Gate functions and key functions
//
// A gate function returns the gate of a call, or nil for a call without a gate. [Per] and [ForAll]
// return gate functions, and any func(context.Context, Call) *weir.Gate is one. A gate function is
// called for each call, from any number of goroutines, and must not block. For metrics and alert
// rules use the group or gate behind it.
//
// A key function returns the key of a call. Calls with the same key share a gate or a limit.
// [ByMethod], [ByService] and [ByPeer] are key functions, [ByMetadata] returns one, and any
// func(context.Context, Call) string is one. Key functions are arguments of [Per], [LimitBy] and
// [LimitRemote].
//
// # Refusals
//
// The error of a refused call is a [*RefusedError]. It matches weir.ErrRefused, and
// breaker.ErrOpen, limiter.ErrLimited or inflight.ErrFull. As a status it is Unavailable if a
// breaker is open or a throttle refuses the call, ResourceExhausted if a limit is reached or the
// service has asked to wait, and DeadlineExceeded if the deadline is too near.
//
// The status has details for clients in any language: a google.rpc.ErrorInfo and, if the wait is
// known, a google.rpc.RetryInfo. The domain of the ErrorInfo is "github.com/weir-go/weir", its
// reason is BREAKER_OPEN, LIMITED, HELD, THROTTLED or HOPELESS, and its metadata has the name of
// the breaker or limiter. A server also sends the wait in the trailer grpc-retry-pushback-ms, which
// gRPC's own retries obey.
//
// If OpenTelemetry records a span for the context of the call, a refusal adds an event weir.refusal
// to that span, and sets the span's attribute weir.refused to true. On a client, this is the span
// of the caller. Package otelweir does the same for HTTP. It also records transitions of breakers,
// for calls of any kind. [LogRefusedCalls] logs the attributes of the event:
//
//	weir.refusal.reason                     open, limited, held, throttled or hopeless.
//	weir.breaker.name or weir.limiter.name  The name of the breaker or limiter.
//	weir.group.key                          The key of the breaker, if it belongs to a group.
//	weir.breaker.state                      The state of the breaker.
//	weir.retry_after                        The wait in seconds, if it is known.
//
// # Outcomes
//
// [DefaultClassify] returns the outcome of a call by its code: Unavailable, DeadlineExceeded,
// ResourceExhausted, Internal, Unknown and DataLoss are failures, Canceled is ignored, and all
// others are successes. A call is also ignored if its caller cancelled it or its client
// disconnected, whatever its code is. A deadline that passes is a failure, but a server may see the
// client disconnect first.
//
// A stream has one outcome: that of its first message, or of its end if that comes first. So a long
// stream does not occupy a probe slot, and a stream that has sent a message is a success however it
// ends. A client's stream that is never read gets its outcome when its context is done or its
// connection is closed. Until then it occupies its slot of weir.Config.MaxConcurrent or Adaptive,
// and its probe slot for breaker.Config.ProbeTimeout at most. Adaptive learns from the time until
// the outcome, so use it for services whose streams begin to answer at once.
//
// # With other interceptors
//
// gRPC retries a call by its service config without calling interceptors again, so weir counts it
// once. Put weir after an interceptor that retries, so that each attempt counts, and is refused
// while the breaker is open. On a server, put weir before authentication to limit by [ByPeer], and
// after it to limit by user. weir can be before or after an interceptor that recovers panics:
// panics count as failures in both cases. OpenTelemetry's stats handler runs before the
// interceptors of a server, so its spans have the events of refusals.
//
// A gate guards a connection. It does not know the backends over which gRPC balances the calls of
// the connection: use the health checks and the outlier detection of gRPC for the backends.
package weirgrpc
