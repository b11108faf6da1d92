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
// # Config
//
// The Config of a client; [ServerConfig] has the same Classify and OnRefusal:
//
//	ClientConfig   Default          Change it
//	Classify       DefaultClassify  if other codes are failures
//	MaxRetryAfter  1m               if servers may ask for longer waits; Off ignores them
//	OnRefusal      none             to log refusals
//
// # Flow
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
// # Guarantees
//
//   - The error of a refused call is a [*RefusedError]. It matches weir.ErrRefused, and
//     breaker.ErrOpen, limiter.ErrLimited or inflight.ErrFull. As a status it is Unavailable if a
//     breaker is open or a throttle refuses the call, ResourceExhausted if a limit is reached or
//     the service has asked to wait, and DeadlineExceeded if the deadline is too near.
//   - A call is ignored if its caller cancelled it or its client disconnected, whatever its code
//     is.
//   - A stream has one outcome: that of its first message, or of its end if that comes first. So a
//     long stream does not occupy a probe slot.
//   - A gate guards a connection, not the backends over which gRPC balances the calls of the
//     connection.
//
// docs/weirgrpc.md says what is in the status, on spans and in logs, how calls are counted, and
// where weir belongs among other interceptors.
package weirgrpc
