package recipes

import (
	"bufio"
	"context"
	"io"
	"net/http"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

// StreamClient returns a client for which a body that breaks off is a failed call.
func StreamClient(gate *weir.Gate, base http.RoundTripper) *http.Client {
	//readme:bodies
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		Base:              base,
		CountBodyFailures: true,
	})}
	//readme:end
	return client
}

//readme:follow

// Follow passes on the lines of a stream. The whole stream is one call of the gate.
func Follow(ctx context.Context, gate *weir.Gate, open func(context.Context) (io.ReadCloser, error), line func(string)) error {
	permit, err := gate.Allow(ctx)
	if err != nil {
		return err
	}
	defer permit.Record(ctx, nil, breaker.Failure) // counts only after a panic
	stream, err := open(ctx)
	if err == nil {
		defer stream.Close()
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			line(lines.Text())
		}
		err = lines.Err()
	}
	permit.Done(ctx, err)
	return err
}

//readme:end
