package readme

import (
	"context"
	"errors"
)

// Order is an order of a customer.
type Order struct{ Cents int }

// Receipt confirms a payment.
type Receipt struct{ Cents int }

// client replaces the client of a real payment service. It fails for orders of 0 cents.
var client paymentClient

type paymentClient struct{}

func (paymentClient) Charge(_ context.Context, order Order) (*Receipt, error) {
	if order.Cents == 0 {
		return nil, errors.New("nothing to pay for")
	}
	return &Receipt{Cents: order.Cents}, nil
}
