package latency

// BucketOf returns the bucket of a duration in nanoseconds, counted from Lowest.
func BucketOf(nanos int64) int { return bucketOf(nanos) }

// FirstBucket returns the bucket at which BucketOf begins its search.
func FirstBucket(nanos int64) int { return int(firstBuckets[leadingBits(nanos)]) }
