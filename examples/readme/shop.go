package readme

import (
	"context"
	"errors"
)

// Order is what a customer buys.
type Order struct{ Cents int }

// Receipt says that it was paid for.
type Receipt struct{ Cents int }

// client stands for the client of a payment service, which does not like free orders.
var client paymentClient

type paymentClient struct{}

func (paymentClient) Charge(_ context.Context, order Order) (*Receipt, error) {
	if order.Cents == 0 {
		return nil, errors.New("nothing to pay for")
	}
	return &Receipt{Cents: order.Cents}, nil
}
