-- Sets the rate of a sliding log for all.
--
-- KEYS is that of the rate, and the log. ARGV is the limit, the span in µs, and the ms to keep it.
local held = redis.call('GET', KEYS[1])
if held and (#held > 40 or not string.match(held, '^l%d+ %d+$')) then return { -1 } end
redis.call('SET', KEYS[1], 'l' .. ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
-- What is in the log may have to count for longer than was thought when it was written.
local left = redis.call('PTTL', KEYS[2])
local span = math.ceil(ARGV[2] / 1000)
if left >= 0 and left < span then redis.call('PEXPIRE', KEYS[2], string.format('%.0f', span)) end
return { 1 }
