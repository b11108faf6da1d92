-- Counters for the parts of a moving window: those of the span and one more, so that no interval as long as the span
-- ever holds more than the limit.
--
-- The key holds "w width bucket:count bucket:count …", the oldest first. A bucket is the number of its part since 1970.
-- Where a later bucket has been counted already, the clock has gone back: it stands still until then. Where that is more than the window and
-- one part, all buckets are moved, so that the newest is the next.
--
-- Numbers: the limit, the number of buckets in a span, and the width of one in µs.

kinds.slidingwindow = { keys = 1, numbers = 3 }

local longest_window = 30000 -- bytes: of 1001 parts

-- read_parts reads the list of parts, in the order of time; false where it is something else.
local function read_parts(s, list, width)
	if list == '' or string.gsub(list, ' %d+:%d+', '') ~= '' then return false end
	local before = 0
	for bucket, count in string.gmatch(list, ' (%d+):(%d+)') do
		bucket, count = number(bucket, before, most_exact / width - 1), number(count, 0, most_permits)
		if not bucket or not count then return false end
		s.parts[#s.parts + 1] = { bucket, count }
		before = bucket
	end
	return true
end

-- converted is the bucket of a part that another config has counted: where it ended, or now where it has not.
local function converted(s, bucket, width)
	local last = (bucket + 1) * width - 1
	if last > now and bucket * width <= now then
		s.late, last = true, now
	end
	return floor(last / s.width)
end

-- read_window reads what the key holds; false where it is something else.
local function read_window(s, held)
	if #held > longest_window then return false end
	local width, list = match(held, '^w(%d+)(.*)$')
	width = number(width, 1, most_exact)
	if not width or not read_parts(s, list, width) then return false end
	local ahead = s.parts[#s.parts][1] - floor(now / width) - 1
	s.late = by_server and ahead * width > (s.buckets + 1) * s.width
	for _, part in ipairs(s.parts) do
		if ahead > 0 and s.late then part[1] = max(part[1] - ahead, 0) end
		if width ~= s.width then part[1] = converted(s, part[1], width) end
		s.newest = max(s.newest, part[1])
	end
	return true
end

-- expiry is when a bucket no longer counts.
local function expiry(s, bucket) return (bucket + s.buckets + 1) * s.width end

function kinds.slidingwindow.look(s, key, arg)
	s.key, s.limit, s.buckets, s.width = KEYS[key], tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	s.parts, s.newest, s.used = {}, floor(now / s.width), 0
	local held = call('GET', s.key)
	if held and not read_window(s, held) then return false end
	local live = {}
	for _, part in ipairs(s.parts) do
		if part[1] >= s.newest - s.buckets and part[2] > 0 then
			local last = live[#live]
			if last and last[1] == part[1] then -- narrower parts of another config: what is written has each bucket once
				last[2] = last[2] + part[2]
			else
				live[#live + 1] = part
			end
			s.used = s.used + part[2]
		end
	end
	if s.used > most_permits then return false end
	s.parts = live
	local wants = max(n, 0)
	s.ok, s.retry = wants <= max(s.limit - s.used, 0), 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		local beyond = wants - (s.limit - s.used)
		for _, part in ipairs(s.parts) do
			beyond = beyond - part[2]
			s.retry = expiry(s, part[1]) - now
			if beyond <= 0 then break end
		end
	end
	return true
end

local function keep_parts(s)
	if #s.parts == 0 then
		call('DEL', s.key)
		return
	end
	local text = { 'w' .. whole(s.width) }
	for _, part in ipairs(s.parts) do
		text[#text + 1] = whole(part[1]) .. ':' .. whole(part[2])
	end
	call('SET', s.key, table.concat(text, ' '), 'PX', lifetime(expiry(s, s.parts[#s.parts][1])))
end

kinds.slidingwindow.keep = keep_parts

function kinds.slidingwindow.take(s)
	local last = s.parts[#s.parts]
	if last and last[1] == s.newest then
		last[2] = last[2] + n
	else
		s.parts[#s.parts + 1] = { s.newest, n }
	end
	s.used = s.used + n
	keep_parts(s)
end

-- refund gives back the oldest that still count, which can only err on the strict side.
function kinds.slidingwindow.refund(s, k)
	if age > 0 and floor((now - age) / s.width) < s.newest - s.buckets then return end
	while k > 0 and #s.parts > 0 do
		local oldest = s.parts[1]
		local back = min(k, oldest[2])
		oldest[2], k, s.used = oldest[2] - back, k - back, s.used - back
		if oldest[2] == 0 then table.remove(s.parts, 1) end
	end
	keep_parts(s)
end

function kinds.slidingwindow.tell(s)
	local reset = 0
	if #s.parts > 0 then reset = expiry(s, s.parts[#s.parts][1]) - now end
	return max(s.limit - s.used, 0), reset
end
