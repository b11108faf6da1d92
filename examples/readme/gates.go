package readme

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

//readme:gates
var (
	// ledger is a gate: the service is not called while it fails. Nothing else is limited.
	ledger = weir.New("ledger", weir.Config{})

	// catalog gets only as many calls at once as it can answer in time.
	catalog = weir.New("catalog", weir.Config{Adaptive: true, Breaker: breaker.Config{Cooldown: 500 * time.Millisecond}})
)

//readme:end
