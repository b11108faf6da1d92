-- The first part of each decision: the request and the time.
--
-- KEYS are the keys of all limits, one limit after the other. ARGV is
--   1. n: the tokens to take, 0 to only look, or negative to give back.
--   2. the time in µs, or '' for the time of the server.
--   3. how many ms longer than necessary the keys live.
--   4. how many µs ago the tokens to give back were taken. It is one number for all limits, or one
--      per limit with commas between them. -1 checks whether n could be taken, without taking.
--   5. for how many ms a settlement is remembered, or 0 if this is none. The last of the KEYS is then
--      that of the settlement.
-- followed, for each limit, by the name of its kind and its numbers.
--
-- Numbers in Lua are doubles, so whole numbers are exact up to 2^53. Times in µs since 1970 reach
-- that in the year 2255, and the callers bound all numbers that are added to a time.

-- A kind of limit has a number of keys and of numbers, and six functions:
--   read(s, key, arg) reads the limit's numbers, which begin at ARGV[arg], and the value of
--     KEYS[key], and stores both in s. It sets s.ok
--     (whether n can be taken), s.limit, s.retry (after how many µs to retry) and s.late (whether the
--     value is further in the future than is possible, because the clock has gone back). It returns
--     false if a key holds a foreign value. It writes nothing.
--   take(s) takes n tokens.
--   charge(s) takes n tokens of a settlement, whether there are as many or not. Beyond the limit they
--     are a debt.
--   refund(s, k) gives back those of k tokens that still count.
--   keep(s) writes the value that read has corrected because it was late.
--   report(s) returns the remaining tokens, and after how many µs all tokens have returned.
--
-- Anyone can write to a key. Every value is checked for its length and range before it is used in
-- arithmetic or bounds a loop. A value out of range is foreign.
local kinds = {}

local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local match, format, sub = string.match, string.format, string.sub

-- most_exact is the largest whole number that a double holds exactly, and so the largest time.
-- most_tokens is the largest limit of a window.
local most_exact, most_tokens = 9007199254740992, 2147483647

-- longest is the longest time, in µs, in which a bucket fills or a debt is paid: 50 years and a little
-- more.
local longest = 1600000000000000

-- number parses a whole number from least to most. It returns nil for anything else.
local function number(text, least, most)
	if not text or #text > 16 or not match(text, '^%d+$') then return nil end
	local value = tonumber(text)
	if value >= least and value <= most then return value end
end

-- whole formats a whole number. tostring would round it.
local function whole(value) return format('%.0f', value) end

local n, extra, ages = tonumber(ARGV[1]), tonumber(ARGV[3]), {}
for age in string.gmatch(ARGV[4], '[^,]+') do ages[#ages + 1] = tonumber(age) end
local age = ages[1]
local now = tonumber(ARGV[2])
-- outside is set by a kind whose numbers do not contain the time of the server.
local outside = false
local by_server = not now -- times given by tests may go back, so nothing is late then
if by_server then
	local time = call('TIME')
	now = time[1] * 1000000 + time[2]
end

-- lifetime returns the time to live, in ms, of a key that is needed until a time. It is never 0.
local function lifetime(until_)
	return whole(max(ceil((until_ - now) / 1000), 1) + extra)
end
