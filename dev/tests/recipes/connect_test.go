package recipes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirtest"
	"github.com/weir-go/weir/window"
)

// connectTo returns a client of a server that answers with *answer.
func connectTo(t *testing.T, gate *weir.Gate, answer *error) *connect.Client[emptypb.Empty, emptypb.Empty] {
	server := httptest.NewServer(connect.NewUnaryHandler(method, func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(new(emptypb.Empty)), *answer
	}))
	t.Cleanup(server.Close)
	return connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+method, connect.WithInterceptors(recipes.ConnectGate(gate)))
}

func callConnect(t *testing.T, client *connect.Client[emptypb.Empty, emptypb.Empty]) error {
	_, err := client.CallUnary(t.Context(), connect.NewRequest(new(emptypb.Empty)))
	return err
}

func TestAConnectCallIsCountedByItsCode(t *testing.T) {
	for code, want := range map[connect.Code]window.Totals{
		connect.CodeNotFound:          {Successes: 1},
		connect.CodeUnauthenticated:   {Successes: 1},
		connect.CodeUnavailable:       {Failures: 1},
		connect.CodeInternal:          {Failures: 1},
		connect.CodeResourceExhausted: {Failures: 1},
	} {
		t.Run(code.String(), func(t *testing.T) {
			gate := weir.New("stock", weir.Config{})
			answer := error(connect.NewError(code, errors.New("no")))
			client := connectTo(t, gate, &answer)
			require.Equal(t, want, countedBy(gate, func() { require.Equal(t, code, connect.CodeOf(callConnect(t, client))) }))
		})
	}
}

func TestAConnectServerThatCannotBeReachedIsAFailure(t *testing.T) {
	gate := weir.New("stock", weir.Config{})
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, weirtest.ErrDown
	})}, "http://stock.example"+method, connect.WithInterceptors(recipes.ConnectGate(gate)))
	require.Equal(t, window.Totals{Failures: 1}, countedBy(gate, func() { require.Error(t, callConnect(t, client)) }))
}

func TestAnOpenGateRefusesConnectCalls(t *testing.T) {
	gate := weir.New("stock", weir.Config{})
	var answer error
	client := connectTo(t, gate, &answer)
	require.NoError(t, callConnect(t, client))
	gate.Breaker().Force(breaker.ForcedOpen, "test")
	err := callConnect(t, client)
	weirtest.WantRefused(t, err, breaker.ErrOpen)
	require.Equal(t, connect.CodeUnknown, connect.CodeOf(err))
}
