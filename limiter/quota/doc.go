// Package quota gives each key so many tokens per day, week or month of a time zone:
//
//	var daily = quota.New(quota.Config{Name: "daily", Limit: 10_000, Every: quota.Day, Zone: berlin})
//
//	if r := daily.Get(user).Take(1); !r.OK {
//		return fmt.Errorf("no calls left today, try again in %s", r.RetryAfter)
//	}
//
// Tokens that are left at the end of a period are gone, and all keys begin the next one with the
// whole quota. For a limit that does not depend on the calendar, see package limiter. For a quota
// that many processes share, see CalendarQuota in package fleet.
//
// [Group.Open] keeps what was used in a file, so that it survives the end of the process:
//
//	if err := daily.Open("/var/lib/app/daily"); err != nil {
//		return err
//	}
//	defer daily.Close()
//
// The limiter of a key works with limiter.Reserve and limiter.NewJoint, in a gate, and in a
// weirhttp.Policy. To let callers wait for the next period, call Wait of
// limiter.NewJoint("", daily.Get(key)).
//
// # Config
//
//	Config    Default   Change it
//	Limit     required  to what a key may use in a period
//	Every     required  to Day, Week or Month
//	Zone      UTC       to the zone of your users or of your contract
//	MaxKeys   100,000   if more keys use something in one period
//	Name      none      to export metrics
//	Shadow    false     to see what the quota would refuse, before it refuses
//	ShowKeys  false     to see the refused keys themselves
//
// # Flow
//
//	   Monday                       Tuesday
//	─────┼────────────────────────────┼──────────────►
//	     │ Take(1) OK … Take(1) refused, until here
//	     └ all keys have Limit        └ all keys have Limit again
//
// # Guarantees
//
//   - A period begins at the first moment of a day in the zone, which is not always midnight, and
//     lasts until the next one begins: days of 23 or 25 hours, months of 28 to 31 days. A week
//     begins on Monday. A zone that skips a day has no period for it. A second for which the clocks
//     stand still, or are slowed down, because of a leap second belongs to the day that ends.
//   - A key never takes more than Limit in a period. What it was charged beyond that, such as by
//     Reservation.Settle of package limiter, counts in the period in which it was charged, and does
//     not reduce the next quota. A Refund of tokens of an earlier period gives nothing back.
//   - The wall clock decides. If it is set back into the period before, the later period goes on,
//     so that it does not begin a second time. If it is set back further, it was wrong before. Then
//     what was used while it was wrong counts in the period that the clock shows now.
//   - Memory is bounded. While MaxKeys keys have used something, further keys are refused with
//     Result.NoRoom. This is logged to slog.Default once per period, and counted.
//   - There are no goroutines and no timers.
//   - A package variable can be used in bubbles of testing/synctest. A group whose clock is another
//     one than before starts again as new.
package quota
