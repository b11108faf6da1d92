package fleet_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// documentedRights returns rights listed in docs/redis.md, as arguments of ACL SETUSER.
func documentedRights(t *testing.T, begin string) []string {
	t.Helper()
	raw, err := os.ReadFile("../docs/redis.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(raw), begin)
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	return strings.Fields(list)
}

// beforeRights and beforeClusterRights are what stands before the rights in docs/redis.md.
const (
	beforeRights        = "ACL SETUSER limits on >secret "
	beforeClusterRights = "[fleet: TestTheRightsThatAUserOfAClusterNeeds].\n\n    ACL SETUSER limits "
)

// whatIsDenied uses all features as a user with the given rights. It returns the first error, or
// else the ACL logs of the servers, which are empty if nothing was denied.
func whatIsDenied(t *testing.T, servers []*redistest.Server, asUser func() redis.UniversalClient, rights []string) any {
	for _, s := range servers {
		setUser := []any{"acl", "setuser", "limits", "reset", "on", ">secret"}
		for _, right := range rights {
			setUser = append(setUser, right)
		}
		s.Do(setUser...)
		s.Do("flushall")
		s.Do("acl", "log", "reset")
	}
	c := asUser()
	defer func() { _ = c.Close() }()
	if err := useAllFeatures(t, c, servers); err != nil {
		return err
	}
	var log string
	for _, s := range servers {
		log += strings.Trim(s.Do("acl", "log"), "[]")
	}
	return log
}

// A user with the rights listed in docs/redis.md can do everything. If one of them is missing,
// Redis denies something.
func TestTheRightsThatAUserNeeds(t *testing.T) {
	s := redistest.Start(t)
	all := documentedRights(t, beforeRights)
	asUser := func() redis.UniversalClient {
		o := s.Options()
		o.Username, o.Password, o.ContextTimeoutEnabled, o.DisableIdentity = "limits", "secret", true, true
		return redis.NewClient(o)
	}
	servers := []*redistest.Server{s}
	require.Empty(t, whatIsDenied(t, servers, asUser, all), "with all rights")
	for i, right := range all {
		rest := slices.Concat(all[:i], all[i+1:])
		require.NotEmpty(t, whatIsDenied(t, servers, asUser, rest), "without %s", right)
	}
}

// In a Cluster the client needs two more rights.
func TestTheRightsThatAUserOfAClusterNeeds(t *testing.T) {
	c := redistest.StartCluster(t)
	standalone := documentedRights(t, beforeRights)
	more := documentedRights(t, beforeClusterRights)
	asUser := func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: c.Addrs(), Username: "limits", Password: "secret", ContextTimeoutEnabled: true, DisableIdentity: true,
		})
	}
	require.Empty(t, whatIsDenied(t, c.Nodes, asUser, slices.Concat(standalone, more)), "with all rights")
	for i, right := range more {
		rest := slices.Concat(standalone, more[:i], more[i+1:])
		require.NotEmpty(t, whatIsDenied(t, c.Nodes, asUser, rest), "without %s", right)
	}
}

// useAllFeatures uses all features of limits and counts.
func useAllFeatures(t *testing.T, c redis.UniversalClient, servers []*redistest.Server) error {
	link, err := fleet.Connect(t.Context(), "rights", c, fleet.LinkConfig{Timeout: time.Second})
	if err != nil {
		return err
	}
	for name, limit := range tenPerSecond {
		b := newLimiter(link, name, limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
		if err := useLimiter(t.Context(), b, name == "log"); err != nil {
			return err
		}
	}
	if err := useLog(t.Context(), newLimiter(link, "expired", fleet.SlidingLog{Limit: 10, Window: time.Minute}, errorOnOutage)); err != nil {
		return err
	}
	for _, name := range []string{"calls", "old calls"} {
		calls := newCalls(link, name, fleet.CallsConfig{Interval: 20 * ms})
		if name == "old calls" && len(servers) == 1 { // the entry of a node that has expired
			servers[0].Do("hset", calls.Key(), "life", "c1", "nOLD", "1 1 0 0 0 0 0 0 0")
		}
		calls.Record(window.Success, ms)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		calls.Run(ctx)
		cancel()
	}
	return nil
}

// useLimiter calls all methods of a limiter. It sets the rates of a sliding log.
func useLimiter(ctx context.Context, b *fleet.Limiter, isLog bool) error {
	var errs []error
	for _, key := range []string{"user", "other"} {
		for _, n := range []int{6, 6, 0} {
			_, err := b.Take(ctx, key, n)
			errs = append(errs, err)
		}
		_, err := b.TakeEach(ctx, key, 1)
		errs = append(errs, err, b.Refund(ctx, time.Now(), key, 1))
	}
	errs = append(errs, b.Refund(ctx, time.Now(), "user", 10))
	for _, n := range []int{20, 0} {
		r, err := b.Reserve(ctx, "settled", 1)
		if errs = append(errs, err); err == nil {
			errs = append(errs, r.Settle(ctx, n))
		}
	}
	if isLog {
		for range 2 {
			errs = append(errs, redisson.SetRate(ctx, b, "other", 20, 2*time.Second))
		}
	}
	return errors.Join(append(errs, b.Reset(ctx, "user"))...)
}

// useLog takes tokens from a log three times, and gives tokens back after the first of them have
// expired.
func useLog(ctx context.Context, log timedLimiter) error {
	var errs []error
	for i := range 3 {
		_, err := log.TakeAt(ctx, testStart.Add(time.Duration(i)*40*time.Second), "user", 2)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, log.GiveBackAt(ctx, testStart.Add(80*time.Second), "user", 1))...)
}
