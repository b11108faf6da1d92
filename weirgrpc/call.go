package weirgrpc

import "strings"

// Call is what is known of a call before it is made or served.
type Call struct {
	Method string // in full, such as "/shop.Stock/Get"
	Target string // on a client as given to grpc.NewClient, such as "dns:///stock:443"; empty on a server
}

// Service returns the service that the method belongs to, such as "shop.Stock".
func (c Call) Service() string {
	name := strings.TrimPrefix(c.Method, "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return name
}
