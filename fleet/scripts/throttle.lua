-- CL.THROTTLE of redis-cell, step by step, in nanoseconds.
--
-- Times in ns do not fit into a double, so each is a pair of seconds and nanoseconds. The key holds the
-- value of redis-cell, the time in ns at which all tokens will have returned (the TAT of a GCRA), so
-- that redis-cell and this script can continue each other's keys. The value does not contain the limit.
-- If the clock has gone back, it is therefore not known how far in the future it may be, and it stays.
--
-- ARGV is
--   1., 2. the time as s and ns, or '' twice for the time of the server
--   3. how many ms longer than necessary the key lives
--   4., 5. the tolerance, which is the cost of all tokens
--   6., 7. the cost of the request, negative to give back
--   8. 1 to write
--   9. for how many ms a settlement is remembered, or 0 if this is none. A second key is then that of
--      the settlement: see decide.lua. Tokens beyond the limit are a debt.
-- The reply to a settlement is 1, or 0 if it came before. Otherwise it is 1 if the request is refused, by how much it is too early, and after what time all
-- tokens have returned.

local longest_s = 1600000000 -- the longest time in which a debt is paid: 50 years and a little more

local settlement = ARGV[9] ~= '0' and KEYS[2]
if settlement and redis.call('GET', settlement) then return { 0 } end

local function pair(s, ns)
	local carry = math.floor(ns / 1000000000)
	return s + carry, ns - carry * 1000000000
end

local function before(s1, ns1, s2, ns2) return s1 < s2 or s1 == s2 and ns1 < ns2 end

local now_s, now_ns = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now_s then
	local time = redis.call('TIME')
	now_s, now_ns = tonumber(time[1]), time[2] * 1000
end
local tolerance_s, tolerance_ns = tonumber(ARGV[4]), tonumber(ARGV[5])
local cost_s, cost_ns = tonumber(ARGV[6]), tonumber(ARGV[7])

local tat_s, tat_ns = now_s, now_ns
local held = redis.call('GET', KEYS[1])
if held then
	if #held > 19 or not string.match(held, '^%d+$') then return { -1 } end
	tat_s, tat_ns = tonumber(string.sub(held, 1, -10)) or 0, tonumber(string.sub(held, -9))
end

if before(tat_s, tat_ns, now_s, now_ns) then tat_s, tat_ns = now_s, now_ns end -- the key lives a little longer than necessary
local next_s, next_ns = pair(tat_s + cost_s, tat_ns + cost_ns)
local early_s, early_ns = pair(next_s - tolerance_s - now_s, next_ns - tolerance_ns - now_ns)
local limited = 0
if settlement then
	if cost_s >= 0 and next_s > now_s + longest_s then next_s, next_ns = math.max(now_s + longest_s, tat_s), tat_ns end
elseif cost_s >= 0 and before(0, 0, early_s, early_ns) then
	limited, next_s, next_ns = 1, tat_s, tat_ns
end
local owed_s, owed_ns = pair(next_s - now_s, next_ns - now_ns)
if ARGV[8] == '1' and limited == 0 then
	if before(0, 0, owed_s, owed_ns) then
		local ms = math.max(owed_s * 1000 + math.ceil(owed_ns / 1000000), 1) + ARGV[3]
		redis.call('SET', KEYS[1], string.format('%.0f%09.0f', next_s, next_ns), 'PX', string.format('%.0f', ms))
	else
		redis.call('DEL', KEYS[1])
	end
end
if settlement then
	redis.call('SET', settlement, '', 'PX', ARGV[9])
	return { 1 }
end
return { limited, early_s, early_ns, owed_s, owed_ns }
