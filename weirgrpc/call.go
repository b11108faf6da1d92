package weirgrpc

// Call is what is known of a call before it is made or served.
type Call struct {
	Method string // in full, such as "/shop.Stock/Get"
	Target string // on a client as given to grpc.NewClient, such as "dns:///stock:443"; empty on a server
}
