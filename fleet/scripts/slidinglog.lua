-- An exact log of what was taken and when.
--
-- The key holds a sorted set: an entry "number:weight" for each grant, its score the time in µs, and before them all the
-- note "sum:number:gone" with score -1: the weight of all entries, how many there have been, and the time of the newest
-- that was dropped. One key for all of it, so that nothing of it can be evicted alone. Entries have numbers because
-- several may be of one moment and weight.
--
-- The second key holds a rate that was set for all, "limit span", and how long it is kept.
--
-- Numbers: the limit, the span in µs, and the ms that a rate is kept.

kinds.slidinglog = { keys = 2, numbers = 3 }

local function entry_weight(member) return tonumber(match(member, '^%d+:(%d+)$')) end

-- read_rate puts the rate that was set in the place of the config's.
local function read_rate(s)
	local held = call('GET', s.rate_key)
	if not held then return true end
	local limit, span = match(held, '^l(%d+) (%d+)$')
	s.limit, s.span, s.set = tonumber(limit), tonumber(span), true
	return limit and #limit <= 10 and #span <= 15
end

local function read_note(s)
	s.sum, s.number, s.gone = 0, 0, 0
	local first = call('ZRANGE', s.key, 0, 0)[1]
	if not first then return true end
	local sum, number, gone = match(first, '^n(%d+):(%d+):(%d+)$')
	s.note, s.sum, s.number, s.gone = first, tonumber(sum), tonumber(number), tonumber(gone)
	return s.note and sum
end

-- after walks the entries that count from the oldest on, until what returns true. Most walks end soon.
local function after(s, what)
	local from, step = s.dropped + 1, 8
	while true do
		local list = call('ZRANGE', s.key, from, from + step - 1, 'WITHSCORES')
		for i = 1, #list, 2 do
			if what(list[i], entry_weight(list[i]), tonumber(list[i + 1])) then return end
		end
		if #list < 2 * step then return end
		from, step = from + step, step * 4
	end
end

function kinds.slidinglog.look(s, key, arg)
	s.key, s.rate_key = KEYS[key], KEYS[key + 1]
	s.limit, s.span, s.keep = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	if not read_rate(s) or not read_note(s) then return false end
	s.at, s.used, s.dropped = now, s.sum, 0
	local newest = s.note and call('ZRANGE', s.key, -1, -1, 'WITHSCORES')
	if newest then
		if newest[1] ~= s.note and not entry_weight(newest[1]) then return false end
		s.newest = tonumber(newest[2])
		s.at = max(now, s.newest) -- a clock that has gone back takes nothing out of the window
		for _, member in ipairs(call('ZRANGEBYSCORE', s.key, 0, whole(s.at - s.span))) do
			local weight = entry_weight(member)
			if not weight then return false end
			s.used, s.dropped = s.used - weight, s.dropped + 1
		end
	end
	-- A span made longer reaches back to where entries have been dropped: until it no longer does, all counts as used.
	s.blind = s.gone > 0 and s.gone > s.at - s.span
	local wants = max(n, 0)
	s.left = s.blind and 0 or max(s.limit - s.used, 0)
	s.ok, s.retry = wants <= s.left, 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		local beyond = wants - (s.limit - s.used)
		if s.blind then s.retry = s.gone + s.span - now end
		if beyond > 0 then
			after(s, function(_, weight, at)
				beyond = beyond - (weight or 0)
				s.retry = max(s.retry, at + s.span - now)
				return beyond <= 0
			end)
		end
	end
	return true
end

-- keep_log writes the note anew, and the lifetime.
local function keep_log(s)
	local note = format('n%.0f:%.0f:%.0f', s.sum, s.number, s.gone)
	if note ~= s.note then
		if s.note then call('ZREM', s.key, s.note) end
		call('ZADD', s.key, -1, note)
	end
	call('PEXPIRE', s.key, lifetime(max(s.newest, s.gone) + s.span))
	if s.set then call('PEXPIRE', s.rate_key, whole(s.keep)) end
end

local function drop_expired(s)
	if s.dropped == 0 then return end
	local last = call('ZRANGE', s.key, s.dropped, s.dropped, 'WITHSCORES')
	s.gone = max(s.gone, tonumber(last[2]))
	call('ZREMRANGEBYRANK', s.key, 1, s.dropped)
	s.sum, s.dropped = s.used, 0
end

function kinds.slidinglog.take(s)
	drop_expired(s)
	s.number, s.sum, s.used, s.left = s.number + 1, s.sum + n, s.used + n, s.left - n
	call('ZADD', s.key, whole(s.at), whole(s.number) .. ':' .. whole(n))
	s.newest = s.at
	keep_log(s)
end

-- refund gives back the oldest that still count, which can only err on the strict side.
function kinds.slidinglog.refund(s, k)
	if s.used == 0 then return end
	drop_expired(s)
	local back = min(k, s.used)
	s.sum, s.used = s.sum - back, s.used - back
	if not s.blind then s.left = max(s.limit - s.used, 0) end
	local given = {}
	after(s, function(member, weight, at)
		if weight then given[#given + 1] = { member, weight, at } end
		back = back - (weight or 0)
		return back <= 0
	end)
	for i, entry in ipairs(given) do
		call('ZREM', s.key, entry[1])
		if i == #given and back < 0 then
			call('ZADD', s.key, whole(entry[3]), match(entry[1], '^%d+:') .. whole(-back))
		end
	end
	keep_log(s)
end

function kinds.slidinglog.tell(s)
	local reset = 0
	if s.used > 0 then reset = s.newest + s.span - now end
	if s.blind then reset = max(reset, s.gone + s.span - now) end
	return s.left, reset
end
