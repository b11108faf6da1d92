-- A counter that begins anew on the grid of Unix time.
--
-- The key holds "f start count". Where a later window has been counted already, the clock has gone back, or another server
-- has taken over: it stays that one.
--
-- Numbers: the limit, and the span in µs.

kinds.fixedwindow = { keys = 1, numbers = 2 }

function kinds.fixedwindow.look(s, key, arg)
	s.key, s.limit, s.span = KEYS[key], tonumber(ARGV[arg]), tonumber(ARGV[arg + 1])
	s.start, s.used = now - now % s.span, 0
	local held = call('GET', s.key)
	if held then
		local start, used = match(held, '^f(%d+) (%d+)$')
		if not start or #start > 16 or #held > 50 then return false end
		start = tonumber(start)
		if start >= s.start then
			s.start, s.used = start - start % s.span, tonumber(used)
		end
	end
	local wants = max(n, 0)
	s.ok, s.retry = wants <= max(s.limit - s.used, 0), 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		s.retry = s.start + s.span - now
	end
	return true
end

local function keep_window(s)
	call('SET', s.key, 'f' .. whole(s.start) .. ' ' .. whole(s.used), 'PX', lifetime(s.start + s.span))
end

function kinds.fixedwindow.take(s)
	s.used = s.used + n
	keep_window(s)
end

function kinds.fixedwindow.refund(s, k)
	if s.used > k then
		s.used = s.used - k
		keep_window(s)
	elseif s.used > 0 then
		s.used = 0
		call('DEL', s.key)
	end
end

function kinds.fixedwindow.tell(s)
	local reset = 0
	if s.used > 0 then reset = s.start + s.span - now end
	return max(s.limit - s.used, 0), reset
end
