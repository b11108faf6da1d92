-- Sets the rate of a sliding log for all nodes.
--
-- KEYS are the key of the rate, and that of the log. ARGV is the limit, the window in µs, and for how
-- many ms to keep the rate.
local held = redis.call('GET', KEYS[1])
if held and (#held > 40 or not string.match(held, '^l%d+ %d+$')) then return { -1 } end
redis.call('SET', KEYS[1], 'l' .. ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
-- The entries of the log may now count for longer than when they were written.
local left = redis.call('PTTL', KEYS[2])
local span = math.ceil(ARGV[2] / 1000)
if left >= 0 and left < span then redis.call('PEXPIRE', KEYS[2], string.format('%.0f', span)) end
return { 1 }
