package main

import (
	"fmt"
	"time"

	root "github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// cooldowns returns gates that differ in the cooldown of their breakers.
func cooldowns() []sim.Maker {
	all := []sim.Maker{sim.None()}
	for _, d := range []time.Duration{5 * time.Second, 3 * time.Second, 2 * time.Second, time.Second, 500 * time.Millisecond} {
		all = append(all, guards.Gate(fmt.Sprint(d), "", root.Config{Breaker: breaker.Config{Cooldown: d}}))
	}
	return append(all, guards.Gate("1s, 1.5, 5s", "", root.Config{
		Breaker: breaker.Config{Cooldown: time.Second, CooldownFactor: 1.5, MaxCooldown: 5 * time.Second},
	}))
}
