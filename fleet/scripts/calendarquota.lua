-- A counter per day, week or month of a time zone, whose boundaries the caller knows.
--
-- The key holds "q start end count": the period, in µs, and the tokens taken in it.
--
-- A stored period that began in the present one counts. One that began earlier but has not ended was
-- stored by a process with another zone, or with other rules of the zone. It goes on until its end,
-- unless it is more than three times as long: then Every was longer, such as a month and not a day.
--
-- If the stored period begins later than now, the clock has gone back, or another server has taken
-- over. It then goes on if it is no later than the next one. Otherwise its count moves to the present
-- period.
--
-- Numbers: the limit, the starts of three periods, the present one if possible in the middle, and the
-- end of the last.

kinds.calendarquota = { keys = 1, numbers = 5 }

-- longest_period is the length in µs that no period exceeds: 33 days.
local longest_period = 33 * 24 * 3600 * 1000000

-- find_period sets the period that contains now. It returns false if none does.
local function find_period(s, arg)
	for i = arg, arg + 2 do
		s.start, s.ends = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
		if s.start <= now and now < s.ends then return true end
	end
	return false
end

-- read_period parses the value. It returns false if it is foreign.
local function read_period(s, held)
	if #held > 50 then return false end
	local start, ends, used = match(held, '^q(%d+) (%d+) (%d+)$')
	start, ends, used = number(start, 0, most_exact), number(ends, 0, most_exact), number(used, 0, most_tokens)
	if not start or not ends or not used or start >= ends or ends - start > longest_period then return false end
	if start < s.start and (ends <= now or ends - start > 3 * (s.ends - s.start)) then return true end
	s.used = used
	s.late = by_server and start > s.ends
	if s.late then return true end
	if start < s.start or start > now then s.ends = ends end
	s.start = start
	return true
end

function kinds.calendarquota.read(s, key, arg)
	s.key, s.limit, s.used = KEYS[key], tonumber(ARGV[arg]), 0
	outside = not find_period(s, arg + 1)
	if outside then return false end
	local held = call('GET', s.key)
	if held and not read_period(s, held) then return false end
	local wants = max(n, 0)
	s.ok, s.retry = wants <= s.limit - s.used, 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		s.retry = s.ends - now
	end
	return true
end

local function keep_period(s)
	call('SET', s.key, 'q' .. whole(s.start) .. ' ' .. whole(s.ends) .. ' ' .. whole(s.used), 'PX', lifetime(s.ends))
end

kinds.calendarquota.keep = keep_period

function kinds.calendarquota.take(s)
	s.used = s.used + n
	keep_period(s)
end

function kinds.calendarquota.charge(s)
	s.used = max(min(s.used + n, most_tokens), s.used)
	keep_period(s)
end

function kinds.calendarquota.refund(s, k)
	if age > 0 and now - age < s.start then return end
	if s.used > k then
		s.used = s.used - k
		keep_period(s)
	elseif s.used > 0 then
		s.used = 0
		call('DEL', s.key)
	end
end

function kinds.calendarquota.report(s)
	local reset = 0
	if s.used > 0 then reset = s.ends - now end
	return max(s.limit - s.used, 0), reset
end
