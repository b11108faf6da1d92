-- An exact log of what was taken and when.
--
-- The key holds a sorted set. Each grant is an entry "end:weight" whose score is its time in µs. Before
-- all entries there is the note "total:base:gone" with score -1.
--
-- total is how many tokens have ever been taken. The end of an entry is the total at that time, in 16
-- digits, so that entries of the same time are in order too. The tokens between two entries are the
-- difference of their ends, so nothing has to be added up. Tokens up to base have been given back.
-- gone is the time of the newest deleted entry that a longer window might still include. All of it is
-- in one key, so that no part of it can be evicted alone.
--
-- Expired entries do not count, whether or not they have been deleted. They are deleted in steps,
-- because a script blocks the whole server.
--
-- The second key holds a rate set for all nodes, "limit window".
--
-- Numbers: the limit, the window in µs, and for how many ms a rate is kept.

kinds.slidinglog = { keys = 2, numbers = 3 }

local most_deleted, longest_span = 1000, 400000000000000 -- entries per call; µs

-- read_rate replaces the limit and the window of the config by those that were set, if any. It
-- returns false if the key holds a foreign value.
local function read_rate(s)
	local held = call('GET', s.rate_key)
	if not held then return true end
	if #held > 40 then return false end
	local limit, span = match(held, '^l(%d+) (%d+)$')
	s.limit, s.span, s.set = number(limit, 1, most_tokens), number(span, 1, longest_span), true
	return s.limit and s.span
end

-- read_note parses the note. It returns false if the first member is foreign.
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

-- read_entry parses an entry. It returns nil if it is foreign.
local function read_entry(s, member, score)
	if not member or member == s.note or #member > 40 then return nil end
	local last, weight = match(member, '^(%d+):(%d+)$')
	last, weight, score = number(last, 1, s.total), number(weight, 1, most_tokens), tonumber(score)
	if not last or not weight or weight > last or not (score >= 0 and score <= most_exact) then return nil end
	return { last = last, weight = weight, at = score }
end

-- entry_at returns the entry at a rank, or nil if it is foreign.
local function entry_at(s, rank)
	local found = call('ZRANGE', s.key, rank, rank, 'WITHSCORES')
	return read_entry(s, found[1], found[2])
end

-- first_from returns the first entry whose end is at least the goal, by binary search.
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

-- read_log finds the entries that count. It returns false if one that it reads is foreign.
local function read_log(s)
	if not s.note or call('ZCARD', s.key) == 1 then return true end
	s.first = entry_at(s, 1)
	local newest = entry_at(s, -1)
	if not s.first or not newest or newest.last ~= s.total then return false end
	s.newest = newest.at
	s.at = max(now, s.newest) -- if the clock has gone back, everything still counts
	local live = call('ZRANGEBYSCORE', s.key, '(' .. whole(max(s.at - s.span, -1)), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
	if live[1] then
		s.oldest = read_entry(s, live[1], live[2])
		if not s.oldest then return false end
		s.from = max(s.base, s.oldest.last - s.oldest.weight)
		s.used = s.total - s.from
	end
	-- If it has gone back by more than a window, all tokens count as taken now.
	s.late = by_server and s.newest - now > s.span
	if s.late then s.at, s.newest = now, now end
	return s.used <= most_tokens
end

-- due returns after how many µs the tokens up to the goal no longer count, or nil if an entry is
-- foreign.
local function due(s, goal)
	local entry = s.oldest
	if s.late then return s.span end
	if entry.last < goal then entry = first_from(s, goal) end
	return entry and entry.at + s.span - now
end

function kinds.slidinglog.read(s, key, arg)
	s.key, s.rate_key = KEYS[key], KEYS[key + 1]
	s.limit, s.span, s.keep_rate = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	s.at, s.used, s.from, s.newest = now, 0, 0, 0
	if not read_rate(s) or not read_note(s) or not read_log(s) then return false end
	-- A window that was made longer may include deleted entries. Until it no longer does, nothing remains.
	if s.gone > s.at then s.gone = 0 end
	s.blind = not s.late and s.gone > 0 and s.gone > s.at - s.span
	local wants = max(n, 0)
	s.left = s.blind and 0 or max(s.limit - s.used, 0)
	s.ok, s.retry = wants <= s.left and s.used <= s.limit, 0
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

-- add_entry adds an entry for tokens taken now.
local function add_entry(s, weight)
	call('ZADD', s.key, whole(s.at), format('%016.0f:%.0f', s.total, weight))
	s.newest = s.at
end

-- restart replaces all entries that count by one.
local function restart(s)
	call('UNLINK', s.key)
	s.note, s.first, s.total, s.from, s.base, s.gone, s.late = nil, nil, s.used, 0, 0, 0, false
	if s.used > 0 then add_entry(s, s.used) end
end

-- counts returns whether an entry counts.
local function counts(s, entry) return entry.at > s.at - s.span and entry.last > s.base end

-- delete_expired deletes the oldest entries that no longer count, up to most_deleted.
local function delete_expired(s)
	if not s.first or counts(s, s.first) then return end
	local list, deleted = call('ZRANGE', s.key, 1, most_deleted, 'WITHSCORES'), 0
	for i = 1, #list, 2 do
		local entry = read_entry(s, list[i], list[i + 1])
		if not entry or counts(s, entry) then break end
		if entry.last > s.base then s.gone = max(s.gone, entry.at) end
		deleted = deleted + 1
	end
	if deleted > 0 then call('ZREMRANGEBYRANK', s.key, 1, deleted) end
end

-- keep_log deletes expired entries, and updates the note and the time to live.
local function keep_log(s)
	if s.late then restart(s) else delete_expired(s) end
	local note = format('n%.0f:%.0f:%.0f', s.total, s.base, s.gone)
	if note ~= s.note then
		if s.note then call('ZREM', s.key, s.note) end
		call('ZADD', s.key, -1, note)
	end
	call('PEXPIRE', s.key, lifetime(max(s.newest, s.gone) + s.span))
	if s.set then call('PEXPIRE', s.rate_key, whole(s.keep_rate)) end
end

kinds.slidinglog.keep = keep_log

local function count(s, k)
	if s.late then restart(s) end
	s.total, s.used, s.left = s.total + k, s.used + k, max(s.left - k, 0)
	add_entry(s, k)
	keep_log(s)
end

function kinds.slidinglog.take(s) count(s, n) end

function kinds.slidinglog.charge(s)
	local k = min(n, most_tokens - s.used)
	if k > 0 then count(s, k) end
end

-- refund gives back the oldest tokens that still count, which can only make the limit stricter.
function kinds.slidinglog.refund(s, k)
	if s.used == 0 or age > 0 and now - age <= s.at - s.span then return end
	if s.late then restart(s) end
	if s.from > s.base then -- expired entries that are still in the log are not given back
		local last = call('ZREVRANGEBYSCORE', s.key, whole(max(s.at - s.span, 0)), 0, 'WITHSCORES', 'LIMIT', 0, 1)
		if last[1] then s.gone = max(s.gone, tonumber(last[2])) end
	end
	local back = min(k, s.used)
	s.base, s.used = s.from + back, s.used - back
	if not s.blind then s.left = max(s.limit - s.used, 0) end
	keep_log(s)
end

function kinds.slidinglog.report(s)
	local reset = 0
	if s.used > 0 then reset = s.newest + s.span - now end
	if s.blind then reset = max(reset, s.gone + s.span - now) end
	return s.left, reset
end
