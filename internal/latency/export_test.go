package latency

import "math/bits"

// BucketOf returns the bucket of a duration in nanoseconds, counted from Lowest.
func BucketOf(nanos int64) int { return bucketOf(nanos) }

// FirstBucket returns the bucket at which BucketOf begins its search.
func FirstBucket(nanos int64) int {
	length := bits.Len64(uint64(nanos))
	return int(firstBuckets[length<<3|int(uint64(nanos)<<(64-length)>>60&7)])
}
