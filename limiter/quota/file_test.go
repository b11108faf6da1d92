package quota_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter/quota"
)

// opened returns a group with a file.
func opened(t testing.TB, c quota.Config, path string) *quota.Group {
	t.Helper()
	g := quota.New(c)
	require.NoError(t, g.Open(path))
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// killed copies the file, as the end of the process leaves it.
func killed(t testing.TB, path string) (next string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return written(t, content)
}

func written(t testing.TB, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "quota")
	if content != nil {
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	return path
}

func left(g *quota.Group, key string) int { return g.Get(key).Take(0).Remaining }

func TestQuotasSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quota")
		c := quota.Config{Limit: 10_000, Every: quota.Day}
		g := opened(t, c, path)
		require.True(t, g.Get("a").Take(4000).OK)
		require.True(t, g.Get("b").Take(1).OK)
		g.Get("c").Charge(10_500)
		require.NoError(t, g.Close())
		require.True(t, g.Get("a").Take(1).OK, "the group goes on without the file")
		require.ErrorContains(t, g.Open(path), "Open was called before")

		g = opened(t, c, path)
		require.Equal(t, []int{6000, 9999, 0, 10_000}, []int{left(g, "a"), left(g, "b"), left(g, "c"), left(g, "d")})
		g.Get("c").Refund(time.Now(), 400)
		require.Zero(t, left(g, "c"), "100 are owed")
		g.Get("c").Refund(time.Now(), 101)
		require.Equal(t, 1, left(g, "c"))
		require.True(t, g.Forget("b"))
		time.Sleep(time.Hour)

		g = opened(t, c, killed(t, path))
		require.InDelta(t, 6000, left(g, "a"), 99)
		require.Equal(t, 10_000, left(g, "b"))
		require.True(t, g.Get("a").Take(1).OK)
		time.Sleep(23 * time.Hour)
		g = opened(t, c, killed(t, path))
		require.Equal(t, 10_000, left(g, "a"))
		require.True(t, g.Get("b").Take(1).OK)
		require.NoError(t, g.Close())
	})
}

func TestAKillCostsAtMostOnePercent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []int{1, 99, 199, 200, 1000, 2500} {
			path := filepath.Join(t.TempDir(), "quota")
			c := quota.Config{Limit: limit, Every: quota.Month}
			g := opened(t, c, path)
			writes := map[string]bool{}
			for used := 1; used <= limit; used++ {
				require.True(t, g.Get("k").Take(1).OK)
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				writes[string(content)] = true
				if used%max(limit/7, 1) == 0 {
					after := opened(t, c, written(t, content))
					require.LessOrEqual(t, left(after, "k"), limit-used, "a token is given twice")
					require.GreaterOrEqual(t, left(after, "k"), limit-used-max(limit/100-1, 0))
				}
			}
			require.LessOrEqual(t, len(writes), 220)
		}
	})
}

// A clock that was set back while the program did not run gives no quota twice.
func TestAClockThatWasSetBackBeforeTheRestart(t *testing.T) {
	c := quota.Config{Limit: 10, Every: quota.Day}
	for _, ahead := range []time.Duration{time.Hour, day, 47 * time.Hour, 48 * time.Hour, 365 * day} {
		path := filepath.Join(t.TempDir(), "quota")
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(ahead)
			g := opened(t, c, path)
			require.True(t, g.Get("a").Take(7).OK)
			require.True(t, g.Get("b").Take(7).OK)
			require.NoError(t, g.Close())
		})
		synctest.Test(t, func(t *testing.T) {
			g := opened(t, c, path)
			r := g.Get("a").Take(1)
			require.Equal(t, 2, r.Remaining, ahead)
			if ahead == day || ahead == 47*time.Hour {
				require.Equal(t, 2*day, r.ResetAfter, "the next day goes on")
			} else {
				require.Equal(t, day, r.ResetAfter, "the clock was wrong")
			}
			g = opened(t, c, killed(t, path))
			require.Equal(t, []int{2, 3}, []int{left(g, "a"), left(g, "b")}, ahead)
			time.Sleep(2 * day)
			require.Equal(t, []int{10, 10}, []int{left(g, "a"), left(g, "b")}, ahead)
			g = opened(t, c, killed(t, path))
			require.Equal(t, []int{10, 10}, []int{left(g, "a"), left(g, "b")}, ahead)
		})
	}
}

// Tokens that were taken while the clock was wrong count on the day on which it was set right, and
// on no later one.
func TestAClockThatIsSetBackMovesAllRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quota")
		c := quota.Config{Limit: 10, Every: quota.Day}
		g := opened(t, c, path)
		wrong := time.Now().Add(10 * day)
		g.ClockShows(wrong)
		require.True(t, g.Get("a").TakeAt(wrong, 1).OK)
		require.True(t, g.Get("b").TakeAt(wrong, 1).OK)
		require.True(t, g.Get("a").Take(1).OK)
		next := opened(t, c, killed(t, path))
		require.Equal(t, []int{8, 9}, []int{left(next, "a"), left(next, "b")})
		time.Sleep(day)
		next = opened(t, c, killed(t, path))
		require.Equal(t, []int{10, 10}, []int{left(next, "a"), left(next, "b")})
	})
}

func TestAFileOfAnotherPeriodCountsAsFarAsItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quota")
		time.Sleep(11 * day)
		g := opened(t, quota.Config{Limit: 10, Every: quota.Day}, path)
		require.True(t, g.Get("a").Take(7).OK)
		require.NoError(t, g.Close())
		g = opened(t, quota.Config{Limit: 100, Every: quota.Month}, path)
		require.Equal(t, 93, left(g, "a"), "what was used today")
		require.True(t, g.Get("b").Take(1).OK)
		require.NoError(t, g.Close())
		g = opened(t, quota.Config{Limit: 100, Every: quota.Month}, path)
		require.Equal(t, []int{93, 99}, []int{left(g, "a"), left(g, "b")})
		require.NoError(t, g.Close())
		g = opened(t, quota.Config{Limit: 10, Every: quota.Day}, path)
		require.Equal(t, []int{10, 10}, []int{left(g, "a"), left(g, "b")}, "what was used this month says nothing about today")
	})
}

func TestWhatWasTakenBeforeOpenCountsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quota")
		c := quota.Config{Limit: 10, Every: quota.Day}
		g := opened(t, c, path)
		require.True(t, g.Get("a").Take(3).OK)
		require.NoError(t, g.Close())
		g = quota.New(c)
		require.True(t, g.Get("a").Take(2).OK)
		require.True(t, g.Get("b").Take(2).OK)
		require.NoError(t, g.Open(path))
		require.Equal(t, []int{5, 8}, []int{left(g, "a"), left(g, "b")})
		g = opened(t, c, killed(t, path))
		require.Equal(t, []int{5, 8}, []int{left(g, "a"), left(g, "b")})
	})
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	c := quota.Config{Limit: 10, Every: quota.Day}
	path := filepath.Join(t.TempDir(), "quota")
	g := opened(t, c, path)
	if runtime.GOOS != "windows" {
		require.ErrorContains(t, quota.New(c).Open(path), "quota: file "+path+": lock")
	}
	require.ErrorContains(t, quota.New(c).Open(filepath.Join(path, "missing", "quota")), "quota: file")
	require.ErrorContains(t, quota.New(c).Open(written(t, []byte("#!/bin/sh\n"))), `does not begin with "weir-quota 1"`)
	c.MaxKeys = 150_001
	require.EqualError(t, quota.New(c).Open(path), "quota: MaxKeys is 150001, must be at most 150000 with a file")
	require.True(t, g.Get("").Take(1).OK)
}

func TestAWriteThatFailsRefusesNothingAndIsReported(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "dir")
		require.NoError(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "quota")
		c := quota.Config{Name: "q", Limit: 100, Every: quota.Day}
		g := opened(t, c, path)
		require.True(t, g.Get("a").Take(1).OK)
		require.NoError(t, g.Err())
		require.NoError(t, os.RemoveAll(dir))
		for range 3 {
			require.True(t, g.Get("a").Take(1).OK)
			require.True(t, g.Get("b").Take(1).OK)
		}
		g.Get("b").Refund(time.Now(), 1)
		g.Forget("b")
		require.True(t, g.Get("b").Take(1).OK)
		require.ErrorIs(t, g.Err(), os.ErrNotExist)
		require.Equal(t, 7.0, metricsOf(g)["backend.errors file"])
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.True(t, g.Get("a").Take(1).OK)
		require.Error(t, g.Err(), "not every request tries")
		time.Sleep(time.Second)
		require.True(t, g.Get("a").Take(1).OK)
		require.NoError(t, g.Err())
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("cannot be written")), log.String())
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("written again")), log.String())
		next := opened(t, c, killed(t, path))
		require.Equal(t, []int{94, 99}, []int{left(next, "a"), left(next, "b")})
		require.NoError(t, os.RemoveAll(dir))
		require.ErrorContains(t, g.Close(), "quota: file "+path)
		require.True(t, g.Get("a").Take(1).OK)
	})
}

func TestDamagedRecordsAreReported(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quota")
		c := quota.Config{Name: "q", Limit: 100, Every: quota.Day}
		g := opened(t, c, path)
		require.True(t, g.Get("a").Take(1).OK)
		require.True(t, g.Get("b").Take(1).OK)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		content[bytes.LastIndexByte(content[:len(content)-1], '\n')+1] ^= 1
		g = opened(t, c, written(t, content))
		require.Equal(t, []int{99, 100}, []int{left(g, "a"), left(g, "b")})
		require.Contains(t, log.String(), "records=1")
	})
}

// The records of a period that is over leave the file in parts.
func TestManyKeysOfTheDayBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quota")
		c := quota.Config{Limit: 10, Every: quota.Day}
		g := quota.New(c)
		for i := range 5000 {
			g.Get(fmt.Sprint(i)).Take(1)
		}
		require.NoError(t, g.Open(path))
		time.Sleep(day)
		for i := range 10 {
			require.True(t, g.Get(fmt.Sprint(4999-i)).Take(2).OK)
			if i%3 == 0 {
				next := opened(t, c, killed(t, path))
				require.Equal(t, []int{10, 8}, []int{left(next, "0"), left(next, fmt.Sprint(4999-i))})
			}
		}
		next := opened(t, c, killed(t, path))
		for i := range 10 {
			require.Equal(t, 8, left(next, fmt.Sprint(4999-i)))
		}
		require.NoError(t, g.Close())
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(100_000))
	})
}

// A file has room for all keys, whatever they have used.
func TestAFileHasRoomForAllKeys(t *testing.T) {
	g := quota.New(quota.Config{Limit: 10, Every: quota.Day, MaxKeys: 150_000})
	for i := range 150_000 {
		g.Get(fmt.Sprint(i)).Charge(math.MaxInt)
	}
	require.NoError(t, g.Open(filepath.Join(t.TempDir(), "quota")))
	require.NoError(t, g.Close())
}

// A request waits for a write only if it needs one, and requests that wait share one.
func TestManyCallersShareWrites(t *testing.T) {
	c := quota.Config{Limit: 1000, Every: quota.Month}
	path := filepath.Join(t.TempDir(), "quota")
	g := opened(t, c, path)
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 100 {
				require.True(t, g.Get(fmt.Sprint(i%4)).Take(1).OK)
			}
		})
	}
	callers.Wait()
	next := opened(t, c, killed(t, path))
	for key := range 4 {
		require.LessOrEqual(t, left(next, fmt.Sprint(key)), 600)
		require.GreaterOrEqual(t, left(next, fmt.Sprint(key)), 591)
	}
}

// Copies of the file that are made meanwhile have every token that was taken before.
func TestCopiesMadeDuringRequestsGiveNoTokenTwice(t *testing.T) {
	const limit = 1_000_000
	c := quota.Config{Limit: limit, Every: quota.Month}
	path := filepath.Join(t.TempDir(), "quota")
	g := opened(t, c, path)
	require.True(t, g.Get("").Take(1).OK) // so that the key always has a record
	var held, refunds atomic.Int64
	var callers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				began := time.Now()
				for range 4 {
					require.True(t, g.Get("").Take(5000).OK)
					held.Add(5000)
					runtime.Gosched()
				}
				held.Add(-20_000)
				refunds.Add(20_000)
				g.Get("").Refund(began, 20_000)
			}
		})
	}
	type copied struct {
		content []byte
		atLeast int64
	}
	var copies []copied
	for len(copies) < testenv.Repeat(5000, 300) {
		refundsBefore := refunds.Load()
		atLeast := held.Load()
		content, err := os.ReadFile(path)
		if atLeast -= refunds.Load() - refundsBefore; err == nil && atLeast > 0 {
			copies = append(copies, copied{content, atLeast})
		}
		runtime.Gosched()
	}
	stop.Store(true)
	callers.Wait()
	for i := range copies {
		next := opened(t, c, written(t, copies[i].content))
		require.LessOrEqual(t, int64(left(next, "")), limit-copies[i].atLeast)
		require.NoError(t, next.Close())
	}
}

// model is what a key has used in the present period, in a plain way. After a kill it is known
// only within bounds.
type model struct{ least, most int }

// Random requests, over periods and restarts that are clean, or ends at any byte of a write.
func TestRandomRequestsAndRestartsAgreeWithAModel(t *testing.T) {
	for seed := range uint64(testenv.Repeat(200, 3)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			names := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe"}
			c := quota.Config{
				Limit: []int{10, 100, 1000}[random.IntN(3)], Every: []quota.Period{quota.Day, quota.Week, quota.Month}[random.IntN(3)],
				Zone: zone(t, names[random.IntN(len(names))]),
			}
			runModel(t, random, c)
		})
	}
}

func runModel(t *testing.T, random *rand.Rand, c quota.Config) {
	path := filepath.Join(t.TempDir(), "quota")
	g := opened(t, c, path)
	keys := map[string]*model{"a": {}, "b": {}, "": {}}
	_, end := quota.PeriodAt(c.Every, c.Zone, time.Now())
	lease := max(c.Limit/100, 1)
	type part struct {
		at  time.Time
		key string
		n   int
	}
	var taken []part
	for range 300 {
		if random.IntN(8) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(time.Until(end)) + int64(time.Hour))))
		}
		if now := time.Now(); !now.Before(end) {
			_, end = quota.PeriodAt(c.Every, c.Zone, now)
			taken = nil
			for _, m := range keys {
				*m = model{}
			}
		}
		key := []string{"a", "b", ""}[random.IntN(3)]
		m, n := keys[key], 1+random.IntN(c.Limit/3)
		before, _ := os.ReadFile(path)
		switch random.IntN(10) {
		case 0:
			g.Get(key).Charge(n)
			m.least, m.most = m.least+n, m.most+n
		case 1:
			if len(taken) == 0 {
				continue
			}
			i := random.IntN(len(taken))
			p := &taken[i]
			n = min(n, p.n)
			g.Get(p.key).Refund(p.at, n)
			p.n -= n
			m = keys[p.key]
			m.least, m.most = max(m.least-n, 0), max(m.most-n, 0)
			if p.n == 0 {
				taken = append(taken[:i], taken[i+1:]...)
			}
			continue
		case 2: // a clean restart
			require.NoError(t, g.Close())
			g = opened(t, c, path)
		case 3: // a kill between two requests
			path = killed(t, path)
			g = opened(t, c, path)
			for _, m := range keys {
				m.most += lease - 1
			}
		default:
			r := g.Get(key).Take(n)
			if m.most+n <= c.Limit {
				require.True(t, r.OK, "%+v %d", m, n)
			} else if m.least+n > c.Limit {
				require.False(t, r.OK)
				require.Equal(t, time.Until(end), r.RetryAfter)
			}
			if !r.OK {
				break
			}
			if random.IntN(6) == 0 { // a kill before it returns
				after, _ := os.ReadFile(path)
				path = written(t, tornWrite(random, before, after))
				g = opened(t, c, path)
				m.most += n
				for _, m := range keys {
					m.most += lease - 1
				}
				break
			}
			m.least, m.most = m.least+n, m.most+n
			taken = append(taken, part{time.Now(), key, n})
		}
		for key, m := range keys {
			used := c.Limit - left(g, key)
			require.GreaterOrEqual(t, used, min(m.least, c.Limit), "%q: a token is given twice", key)
			require.LessOrEqual(t, used, m.most, "%q: too much is counted", key)
			if used < c.Limit {
				m.least, m.most = used, used
			} else {
				m.least, m.most = max(m.least, used), max(m.most, used)
			}
		}
	}
	require.NoError(t, g.Err())
}

// tornWrite returns what is in the file if the process ends during a write.
func tornWrite(random *rand.Rand, before, after []byte) []byte {
	if len(before) > 0 && bytes.HasPrefix(after, before) {
		return after[:len(before)+random.IntN(len(after)-len(before)+1)]
	}
	if random.IntN(2) == 0 {
		return before // it is replaced as a whole
	}
	return after
}
