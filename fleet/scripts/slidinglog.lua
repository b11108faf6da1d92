-- An exact log of what was taken and when.
--
-- The key holds a sorted set: an entry "end:weight" for each grant, its score the time in µs, and before them all the
-- note "total:base:gone" with score -1. The total is how many permits have ever been taken, and an entry's end is what it was then, in 16
-- digits, so that entries of one moment are in order too: what lies between two entries is the difference of their ends, and nothing needs to
-- be added up. What was taken up to the base has been given back. Gone is the time of the newest entry that was dropped although a longer span
-- might reach it. One key for all of it, so that nothing of it can be evicted alone.
--
-- Entries that have expired do not count, whether or not they have been dropped: that is done in steps, for a script holds up the whole server.
--
-- The second key holds a rate that was set for all, "limit span", and how long it is kept.
--
-- Numbers: the limit, the span in µs, and the ms that a rate is kept.

kinds.slidinglog = { keys = 2, numbers = 3 }

local most_dropped, longest_span = 1000, 400000000000000 -- at once; µs

-- read_rate puts the rate that was set in the place of the config's; false where the key holds something else.
local function read_rate(s)
	local held = call('GET', s.rate_key)
	if not held then return true end
	if #held > 40 then return false end
	local limit, span = match(held, '^l(%d+) (%d+)$')
	s.limit, s.span, s.set = number(limit, 1, most_permits), number(span, 1, longest_span), true
	return s.limit and s.span
end

-- read_note reads the note; false where there is something else in its place.
local function read_note(s)
	s.total, s.base, s.gone = 0, 0, 0
	local first = call('ZRANGE', s.key, 0, 0)[1]
	if not first then return true end
	if #first > 60 then return false end
	local total, base, gone = match(first, '^n(%d+):(%d+):(%d+)$')
	s.total, s.gone = number(total, 0, most_exact), number(gone, 0, most_exact)
	s.base = s.total and number(base, 0, s.total)
	s.note = first
	return s.base and s.gone
end

-- read_entry reads one entry of a reply; nil where it is something else.
local function read_entry(s, member, score)
	if not member or member == s.note or #member > 40 then return nil end
	local last, weight = match(member, '^(%d+):(%d+)$')
	last, weight, score = number(last, 1, s.total), number(weight, 1, most_permits), tonumber(score)
	if not last or not weight or weight > last or not (score >= 0 and score <= most_exact) then return nil end
	return { last = last, weight = weight, at = score }
end

-- entry_at is the entry of a rank, and nil where there is something else.
local function entry_at(s, rank)
	local found = call('ZRANGE', s.key, rank, rank, 'WITHSCORES')
	return read_entry(s, found[1], found[2])
end

-- first_from finds, by halving, the first entry whose end is no less than the goal.
local function first_from(s, goal)
	local from, to = 1, call('ZCARD', s.key) - 1
	local found
	while from <= to do
		local middle = floor((from + to) / 2)
		local entry = entry_at(s, middle)
		if not entry then return nil end
		if entry.last >= goal then
			found, to = entry, middle - 1
		else
			from = middle + 1
		end
	end
	return found
end

-- read_log finds the entries that count; false where there is something else among those that are looked at.
local function read_log(s)
	if not s.note or call('ZCARD', s.key) == 1 then return true end
	s.first = entry_at(s, 1)
	local newest = entry_at(s, -1)
	if not s.first or not newest or newest.last ~= s.total then return false end
	s.newest = newest.at
	s.at = max(now, s.newest) -- a clock that has gone back takes nothing out of the window
	local live = call('ZRANGEBYSCORE', s.key, '(' .. whole(max(s.at - s.span, -1)), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
	if live[1] then
		s.oldest = read_entry(s, live[1], live[2])
		if not s.oldest then return false end
		s.from = max(s.base, s.oldest.last - s.oldest.weight)
		s.used = s.total - s.from
	end
	-- By more than a span: what was taken counts as taken now.
	s.late = by_server and s.newest - now > s.span
	if s.late then s.at, s.newest = now, now end
	return s.used <= most_permits
end

-- due is after how many µs what was taken up to the goal no longer counts; nil where there is something else.
local function due(s, goal)
	local entry = s.oldest
	if s.late then return s.span end
	if entry.last < goal then entry = first_from(s, goal) end
	return entry and entry.at + s.span - now
end

function kinds.slidinglog.look(s, key, arg)
	s.key, s.rate_key = KEYS[key], KEYS[key + 1]
	s.limit, s.span, s.keep_rate = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	s.at, s.used, s.from, s.newest = now, 0, 0, 0
	if not read_rate(s) or not read_note(s) or not read_log(s) then return false end
	-- A span made longer reaches back to where entries have been dropped: until it no longer does, all counts as used.
	if s.gone > s.at then s.gone = 0 end
	s.blind = not s.late and s.gone > 0 and s.gone > s.at - s.span
	local wants = max(n, 0)
	s.left = s.blind and 0 or max(s.limit - s.used, 0)
	s.ok, s.retry = wants <= s.left, 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		local beyond = wants - (s.limit - s.used)
		if s.blind then s.retry = s.gone + s.span - now end
		if beyond > 0 then
			local retry = due(s, s.from + beyond)
			if not retry then return false end
			s.retry = max(s.retry, retry)
		end
	end
	return true
end

-- add_entry adds an entry for what was taken at a time.
local function add_entry(s, weight)
	call('ZADD', s.key, whole(s.at), format('%016.0f:%.0f', s.total, weight))
	s.newest = s.at
end

-- restart makes one entry of all that counts.
local function restart(s)
	call('UNLINK', s.key)
	s.note, s.first, s.total, s.from, s.base, s.gone, s.late = nil, nil, s.used, 0, 0, 0, false
	if s.used > 0 then add_entry(s, s.used) end
end

-- counts reports whether an entry counts.
local function counts(s, entry) return entry.at > s.at - s.span and entry.last > s.base end

-- drop drops the oldest entries that do not count any more, up to some.
local function drop(s)
	if not s.first or counts(s, s.first) then return end
	local list, dropped = call('ZRANGE', s.key, 1, most_dropped, 'WITHSCORES'), 0
	for i = 1, #list, 2 do
		local entry = read_entry(s, list[i], list[i + 1])
		if not entry or counts(s, entry) then break end
		if entry.last > s.base then s.gone = max(s.gone, entry.at) end
		dropped = dropped + 1
	end
	if dropped > 0 then call('ZREMRANGEBYRANK', s.key, 1, dropped) end
end

-- keep_log drops what does not count, and writes the note anew, and the lifetime.
local function keep_log(s)
	if s.late then restart(s) else drop(s) end
	local note = format('n%.0f:%.0f:%.0f', s.total, s.base, s.gone)
	if note ~= s.note then
		if s.note then call('ZREM', s.key, s.note) end
		call('ZADD', s.key, -1, note)
	end
	call('PEXPIRE', s.key, lifetime(max(s.newest, s.gone) + s.span))
	if s.set then call('PEXPIRE', s.rate_key, whole(s.keep_rate)) end
end

kinds.slidinglog.keep = keep_log

function kinds.slidinglog.take(s)
	if s.late then restart(s) end
	s.total, s.used, s.left = s.total + n, s.used + n, s.left - n
	add_entry(s, n)
	keep_log(s)
end

-- refund gives back the oldest that still count, which can only err on the strict side.
function kinds.slidinglog.refund(s, k)
	if s.used == 0 or age > 0 and now - age <= s.at - s.span then return end
	if s.late then restart(s) end
	if s.from > s.base then -- what has expired up to there, and is still in the log, is not given back
		local last = call('ZREVRANGEBYSCORE', s.key, whole(max(s.at - s.span, 0)), 0, 'WITHSCORES', 'LIMIT', 0, 1)
		if last[1] then s.gone = max(s.gone, tonumber(last[2])) end
	end
	local back = min(k, s.used)
	s.base, s.used = s.from + back, s.used - back
	if not s.blind then s.left = max(s.limit - s.used, 0) end
	keep_log(s)
end

function kinds.slidinglog.tell(s)
	local reset = 0
	if s.used > 0 then reset = s.newest + s.span - now end
	if s.blind then reset = max(reset, s.gone + s.span - now) end
	return s.left, reset
end
