-- The first part of each decision: what was asked, and the time.
--
-- KEYS are those of the limits, in turn. ARGV is n, the permits: to take, or 0 to look, or below 0 to give back; the time
-- in µs, or '' for the server's; ms that keys live on beyond their use; then for each limit the name of its kind and its numbers.
--
-- Numbers in Lua are doubles, so whole numbers are exact up to 2^53. Times in µs since 1970 get there in the year 2255,
-- and all that is added to one is bounded by whoever calls.

-- A kind says how many keys and numbers it has, and does four things: look(s, key, arg) fills s with what it finds, from KEYS[key]
-- and ARGV[arg] on, and with whether it agrees (s.ok), its limit (s.limit) and after how many µs to ask again (s.retry); it returns false where
-- a key holds something else, and writes nothing. take(s) takes, refund(s, k) gives k back, and tell(s) is what remains, and after how
-- many µs all is there again.
local kinds = {}

local call, floor, ceil, max, min, match, format = redis.call, math.floor, math.ceil, math.max, math.min, string.match, string.format

-- whole is a number as text: tostring would round it.
local function whole(number) return format('%.0f', number) end

local n, extra = tonumber(ARGV[1]), tonumber(ARGV[3])
local now = tonumber(ARGV[2])
if not now then
	local time = call('TIME')
	now = time[1] * 1000000 + time[2]
end

-- lifetime is how many ms a key lives that is of no use from the time until (µs) on: never 0.
local function lifetime(until_)
	return whole(max(ceil((until_ - now) / 1000), 1) + extra)
end
