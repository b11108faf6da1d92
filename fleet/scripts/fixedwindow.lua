-- A counter per window, aligned to Unix time.
--
-- The key holds "f start count". If a later window has been counted already, the clock has gone back,
-- or another server has taken over. That window is then used, if it is no later than the next one.
--
-- After a settlement the count may be above the limit. Then there is a 0 before it: the count is a debt,
-- of which each window pays one limit.
--
-- Numbers: the limit, and the length of a window in µs.

kinds.fixedwindow = { keys = 1, numbers = 2 }

-- windows_for returns in how many windows k tokens are paid.
local function windows_for(s, k)
	if not s.debt then return 1 end
	return max(min(ceil(k / s.limit), ceil(longest / s.span)), 1)
end

-- pay_debt moves a debt to the current window.
local function pay_debt(s, start, used)
	used = used - (s.start - start) / s.span * s.limit
	if used > 0 then s.used = used else s.debt = false end
end

-- read_window parses the value. It returns false if it is foreign.
local function read_window(s, held)
	if #held > 40 then return false end
	local start, used = match(held, '^f(%d+) (%d+)$')
	s.debt = sub(used or '', 1, 1) == '0'
	start, used = number(start, 0, most_exact), number(used, 0, most_tokens)
	if not start or not used then return false end
	start = start - start % s.span
	if start < s.start then
		if s.debt then pay_debt(s, start, used) end
		return true
	end
	s.late = by_server and start > s.start + s.span
	if s.late then start = s.start + s.span end
	s.start, s.used = start, used
	return true
end

function kinds.fixedwindow.read(s, key, arg)
	s.key, s.limit, s.span = KEYS[key], tonumber(ARGV[arg]), tonumber(ARGV[arg + 1])
	s.start, s.used = now - now % s.span, 0
	local held = call('GET', s.key)
	if held and not read_window(s, held) then return false end
	local wants = max(n, 0)
	s.ok, s.retry = wants <= s.limit - s.used, 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		s.retry = s.start + windows_for(s, wants + s.used - s.limit) * s.span - now
	end
	return true
end

local function keep_window(s)
	local mark = s.debt and s.used > s.limit and '0' or ''
	call('SET', s.key, 'f' .. whole(s.start) .. ' ' .. mark .. whole(s.used), 'PX', lifetime(s.start + windows_for(s, s.used) * s.span))
end

kinds.fixedwindow.keep = keep_window

function kinds.fixedwindow.take(s)
	s.used = s.used + n
	keep_window(s)
end

function kinds.fixedwindow.charge(s)
	local most = min(floor(longest / s.span) * s.limit, most_tokens)
	s.used, s.debt = max(min(s.used + n, most), s.used), true
	keep_window(s)
end

function kinds.fixedwindow.refund(s, k)
	if age > 0 and now - age < s.start then return end
	if s.used > k then
		s.used = s.used - k
		keep_window(s)
	elseif s.used > 0 then
		s.used = 0
		call('DEL', s.key)
	end
end

function kinds.fixedwindow.report(s)
	local reset = 0
	if s.used > 0 then reset = s.start + windows_for(s, s.used) * s.span - now end
	return max(s.limit - s.used, 0), reset
end
