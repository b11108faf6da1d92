-- The shared window of all nodes. The script adds the flush of one node, if it is new, and returns
-- all counts.
--
-- The key is a hash with these fields:
--   life      'c' and the time at which the key was made.
--   total     the calls that came in time.
--   0, 1, ...   the buckets: each is stored at its number modulo (buckets + 1).
--   n<node>   per node: the number of its latest flush, when that came, its calls that came in time,
--             and how many of its calls came too late.
--   sweep     the cursor of the search for expired nodes
-- Six numbers are successes, failures, slow calls, slow failures, ignored and refused calls.
--
-- ARGV is
--   1. the width of a bucket in µs.
--   2. the number of buckets.
--   3. the time in µs, or '' for the time of the server.
--   4. the ms after which the key, or the entry of a node, expires.
--   5. the node.
--   6. the number of its flush.
--   7. when this message was sent, by this server's clock in µs, or '' if that is not known.
-- followed, for each delta, by its age in µs and its six numbers.
--
-- The reply is the time, the life, whether the node was known, the six numbers of total and of the
-- node, its late calls, and for each bucket in the window its number and its six numbers. If the key
-- holds a foreign value, the reply is the single number -1.

local key, node = KEYS[1], 'n' .. ARGV[5]
local width, buckets, keep = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local now = tonumber(ARGV[3])
if not now then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
end

-- Anyone can write to a key. A number that a double does not hold exactly is foreign.
local most_exact, longest = 9007199254740992, 200

-- list parses a list of whole numbers of the given length. It returns zeros if there is no text, and
-- nil for any other text.
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

-- text formats a list.
local function text(l)
	local words = {}
	for i, number in ipairs(l) do words[i] = string.format('%.0f', number) end
	return table.concat(words, ' ')
end

-- add adds six numbers, from ARGV[first] on, to those of l.
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

-- If the clock has gone back, time stands still until the clock has caught up, unless it has gone
-- back by more than the window.
local clock, ring = math.floor(now / width), {}
local newest = clock
for i = 0, buckets do
	ring[i] = list(held[4 + i], 7)
	if not ring[i] then return { -1 } end
	if ring[i][1] <= clock + buckets then newest = math.max(newest, ring[i][1]) end
end
now = math.max(now, newest * width)

-- add_flush adds the flush to the counts and writes them.
local function add_flush()
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

-- sweep deletes expired nodes, and nodes that came while the clock was far ahead. It checks about 50
-- nodes per new node and continues where the last sweep ended. Its cost is therefore independent of
-- the number of nodes, and it has checked all of them when their number has grown by a fiftieth.
local function sweep()
	local cursor = string.match(held[#names] or '', '^%d+$') or '0'
	local found = redis.pcall('HSCAN', key, cursor, 'COUNT', 50) -- pcall: a foreign cursor must not undo the flush
	if found.err then found = { '0', {} } end
	for i = 1, #found[2], 2 do
		local field = found[2][i]
		local seen = tonumber(string.match(found[2][i + 1], '^%d+ (%d+)'))
		if string.sub(field, 1, 1) == 'n' and seen and math.abs(now - seen) > keep * 1000 then redis.call('HDEL', key, field) end
	end
	redis.call('HSET', key, 'sweep', found[1])
end

if #ARGV > 7 and tonumber(ARGV[6]) > mine[1] then
	add_flush()
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
