-- The window of a fleet: take a flush of one node, if it is new, and tell all that is counted.
--
-- The key is a hash. "life" has when it was made, "total" what was counted in time, "0" to as many as there are buckets
-- the buckets, each at its number modulo theirs and one, and "n" and a node's name what is known of that node: the number
-- of its latest flush, when that came, what was counted in time of all its flushes, and how many of its calls were not.
-- "sweep" is how far the search has come for nodes to be forgotten.
-- Every six numbers are successes, failures, slow calls, slow failures, ignored and refused calls.
--
-- ARGV is the width of a bucket in µs; the buckets; the time in µs, or '' for the server's; how many ms are to pass before
-- the key, or a node, is forgotten; the node; the number of its flush; when it was sent by this server's clock, in µs, or
-- '' where that is not known; then for each delta its age in µs and its six numbers.
--
-- The answer is the time, the life, whether the node was known, the numbers of "total" and of the node, its late calls,
-- and of each bucket in the window its number and its six. Where the key holds something else it is the one number -1.

local key, node = KEYS[1], 'n' .. ARGV[5]
local width, buckets, keep = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local now = tonumber(ARGV[3])
if not now then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
end

-- Anybody can write to a key, so numbers that a double does not hold exactly are something else.
local most_exact, longest = 9007199254740992, 200

-- list reads so many whole numbers, zeros where there is no text; nil if the text is another.
local function list(text, length)
	local l = {}
	if not text then
		for i = 1, length do l[i] = 0 end
	elseif #text <= longest and not string.find(text, '[^%d ]') then
		for word in string.gmatch(text, '%d+') do l[#l + 1] = tonumber(word) end
	end
	if #l ~= length then return nil end
	for _, number in ipairs(l) do
		if number > most_exact then return nil end
	end
	return l
end

local function text(l)
	local words = {}
	for i, number in ipairs(l) do words[i] = string.format('%.0f', number) end
	return table.concat(words, ' ')
end

-- add adds six numbers of ARGV to those of l.
local function add(l, from, first)
	for i = 0, 5 do l[from + i] = l[from + i] + tonumber(ARGV[first + i]) end
end

local names = { 'life', 'total', node }
for i = 0, buckets do names[#names + 1] = tostring(i) end
names[#names + 1] = 'sweep'
local held = redis.pcall('HMGET', key, unpack(names))
if held.err then return held end
local life = held[1] and #held[1] <= 17 and tonumber(string.match(held[1], '^c(%d+)$'))
if not life and redis.call('EXISTS', key) == 1 then return { -1 } end
local total, mine = list(held[2], 6), list(held[3], 9)
if not total or not mine then return { -1 } end
local known = 0
if held[3] then known = 1 end

-- Where the clock has gone back it stands still until it has caught up, unless that is by more than the window.
local clock, ring = math.floor(now / width), {}
local newest = clock
for i = 0, buckets do
	ring[i] = list(held[4 + i], 7)
	if not ring[i] then return { -1 } end
	if ring[i][1] <= clock + buckets then newest = math.max(newest, ring[i][1]) end
end
now = math.max(now, newest * width)

local function take()
	local delay, touched = 0, {}
	if ARGV[7] ~= '' then delay = math.max(now - ARGV[7], 0) end
	for first = 8, #ARGV, 7 do
		local bucket = math.min(math.floor((now - delay - ARGV[first]) / width), newest)
		if bucket > newest - buckets then
			local slot = bucket % (buckets + 1)
			if ring[slot][1] ~= bucket then ring[slot] = { bucket, 0, 0, 0, 0, 0, 0 } end
			add(ring[slot], 2, first + 1)
			add(total, 1, first + 1)
			add(mine, 3, first + 1)
			touched[slot] = true
		else
			for i = 1, 6 do
				if i ~= 3 and i ~= 4 then mine[9] = mine[9] + tonumber(ARGV[first + i]) end
			end
		end
	end
	mine[1], mine[2], life = tonumber(ARGV[6]), now, life or now
	local fields = { 'life', 'c' .. text({ life }), 'total', text(total), node, text(mine) }
	for slot in pairs(touched) do
		fields[#fields + 1] = tostring(slot)
		fields[#fields + 1] = text(ring[slot])
	end
	redis.call('HSET', key, unpack(fields))
	redis.call('PEXPIRE', key, ARGV[4])
end

-- sweep forgets nodes that have long been silent, or have come by a clock that was far ahead. It goes on where the last one
-- ended, and each new node pays for some others alone: so it costs the same however many there are, and comes round while there
-- are a fiftieth more of them.
local function sweep()
	local cursor = string.match(held[#names] or '', '^%d+$') or '0'
	local found = redis.pcall('HSCAN', key, cursor, 'COUNT', 50) -- what has been written counts, whatever the cursor was
	if found.err then found = { '0', {} } end
	for i = 1, #found[2], 2 do
		local field = found[2][i]
		local seen = tonumber(string.match(found[2][i + 1], '^%d+ (%d+)'))
		if string.sub(field, 1, 1) == 'n' and seen and math.abs(now - seen) > keep * 1000 then redis.call('HDEL', key, field) end
	end
	redis.call('HSET', key, 'sweep', found[1])
end

if #ARGV > 7 and tonumber(ARGV[6]) > mine[1] then
	take()
	if known == 0 then sweep() end
end

local answer = { now, life or 0, known }
for i = 1, 6 do answer[#answer + 1] = total[i] end
for i = 3, 9 do answer[#answer + 1] = mine[i] end
for slot = 0, buckets do
	local bucket = ring[slot]
	if bucket[1] > newest - buckets and bucket[1] <= newest then
		for i = 1, 7 do answer[#answer + 1] = bucket[i] end
	end
end
return answer
