package recipes

import (
	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

//readme:tenants

// Tenants has a gate for each tenant, with the rate of the tenant's plan.
type Tenants struct {
	breakers *breaker.Group[string]
	limits   *limiter.Group[string]
	config   limiter.GroupConfig[string]
}

// NewTenants returns Tenants. For each call, planOf returns the index of a plan, or −1 for free.
func NewTenants(free limiter.Rate, plans []limiter.Tier, planOf func(tenant string) int) *Tenants {
	c := limiter.GroupConfig[string]{Name: "plans", Rate: free, Tiers: plans, TierOf: planOf}
	return &Tenants{breaker.NewGroup[string]("tenants", breaker.GroupConfig{}), limiter.NewGroup(c), c}
}

// Gate returns the gate for one call of a tenant.
func (t *Tenants) Gate(tenant string) *weir.Gate {
	return weir.Join("tenants", weir.Parts{Breaker: t.breakers.Get(tenant), Limiter: t.limits.Get(tenant)})
}

//readme:end

//readme:setplans

// SetPlans changes the rates of the plans.
func (t *Tenants) SetPlans(free limiter.Rate, plans []limiter.Tier) error {
	c := t.config
	c.Rate, c.Tiers = free, plans
	return t.limits.Reconfigure(c)
}

//readme:end
