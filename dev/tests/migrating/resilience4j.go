package migrating

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

//readme:resilience4j-defaults
var likeResilience4j = breaker.Config{
	FailureRate: 0.5,
	FailureRun:  breaker.Off, // resilience4j has no runs
	LastCalls:   100,         // COUNT_BASED
	MinCalls:    100,
	SlowCall:    time.Minute,
	SlowRate:    1,
	Cooldown:    time.Minute,
	Probes:      10,
	Recovery:    breaker.Off,
}

//readme:end

//readme:resilience4j-gate
var likeDecorators = weir.Config{
	Breaker:       likeResilience4j,
	Rate:          limiter.Per(50, time.Second), // limitForPeriod, limitRefreshPeriod
	MaxConcurrent: 25,                           // maxConcurrentCalls
	MaxWait:       5 * time.Second,              // timeoutDuration and maxWaitDuration together
}

//readme:end
