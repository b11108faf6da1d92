-- Counters for the parts of a moving window: those of the span and one more, so that no interval as long as the span
-- ever holds more than the limit.
--
-- The key holds "w width bucket:count bucket:count …", the oldest first. A bucket is the number of its part since 1970.
--
-- Numbers: the limit, the number of buckets in a span, and the width of one in µs.

kinds.slidingwindow = { keys = 1, numbers = 3 }

-- unpack_window reads what the key holds; false where it is something else.
local function unpack_window(s, held)
	local width, list = match(held, '^w(%d+)(.*)$')
	if not width or #width > 15 or list == '' or string.gsub(list, ' %d+:%d+', '') ~= '' then return false end
	width = tonumber(width)
	if width == 0 then return false end
	for bucket, count in string.gmatch(list, ' (%d+):(%d+)') do
		bucket, count = tonumber(bucket), tonumber(count)
		if width ~= s.width then -- counted by another config: where it ended
			bucket = floor(((bucket + 1) * width - 1) / s.width)
		end
		s.parts[#s.parts + 1] = { bucket, count }
		s.newest = max(s.newest, bucket)
	end
	return true
end

-- expiry is when a bucket no longer counts.
local function expiry(s, bucket) return (bucket + s.buckets + 1) * s.width end

function kinds.slidingwindow.look(s, key, arg)
	s.key, s.limit, s.buckets, s.width = KEYS[key], tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	s.parts, s.newest, s.used = {}, floor(now / s.width), 0
	local held = call('GET', s.key)
	if held and not unpack_window(s, held) then return false end
	local live = {}
	for _, part in ipairs(s.parts) do
		if part[1] >= s.newest - s.buckets and part[2] > 0 then
			live[#live + 1] = part
			s.used = s.used + part[2]
		end
	end
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
