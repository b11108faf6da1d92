-- The first part of each decision: what was asked, and the time.
--
-- KEYS are those of the limits, in turn. ARGV is n, the permits: to take, or 0 to look, or below 0 to give back; the time
-- in µs, or '' for the server's; ms that keys live on beyond their use; µs since what is given back was taken, of all
-- limits or of each, with commas between, or -1 to look whether n could be taken; then for each limit the name
-- of its kind and its numbers.
--
-- Numbers in Lua are doubles, so whole numbers are exact up to 2^53. Times in µs since 1970 get there in the year 2255,
-- and all that is added to one is bounded by whoever calls.

-- A kind says how many keys and numbers it has, and does five things: look(s, key, arg) fills s with what it finds, from KEYS[key]
-- and ARGV[arg] on, and with whether it agrees (s.ok), its limit (s.limit), after how many µs to ask again (s.retry), and whether what
-- it found is later than can be, for the clock has gone back by much (s.late); it returns false where a key holds something else, and writes
-- nothing. take(s) takes, refund(s, k) gives back those of k that still count, keep(s) writes what look has made of a late value, and tell(s) is what remains, and
-- after how many µs all is there again.
--
-- Anybody can write to a key. So whatever is read is checked for its length and range before anything is reckoned with it: what is out of range
-- is something else, and no loop is longer than what has been checked.
local kinds = {}

local call, floor, ceil, max, min, match, format = redis.call, math.floor, math.ceil, math.max, math.min, string.match, string.format

-- The largest whole number that a double holds exactly, and with it the largest time; and the largest limit of a window.
local most_exact, most_permits = 9007199254740992, 2147483647

-- number is the whole number from least to most that the text is, and nil where it is anything else.
local function number(text, least, most)
	if not text or #text > 16 or not match(text, '^%d+$') then return nil end
	local value = tonumber(text)
	if value >= least and value <= most then return value end
end

-- whole is a number as text: tostring would round it.
local function whole(value) return format('%.0f', value) end

local n, extra, ages = tonumber(ARGV[1]), tonumber(ARGV[3]), {}
for age in string.gmatch(ARGV[4], '[^,]+') do ages[#ages + 1] = tonumber(age) end
local age = ages[1]
local now = tonumber(ARGV[2])
local by_server = not now -- a time that is given may be older than others, and then nothing is late
if by_server then
	local time = call('TIME')
	now = time[1] * 1000000 + time[2]
end

-- lifetime is how many ms a key lives that is of no use from the time until (µs) on: never 0.
local function lifetime(until_)
	return whole(max(ceil((until_ - now) / 1000), 1) + extra)
end
