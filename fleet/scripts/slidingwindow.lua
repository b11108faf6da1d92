-- One counter per bucket of a moving window. The buckets of a window and one more are kept, so that no
-- span as long as the window ever has more than the limit.
--
-- The key holds "w width bucket:count bucket:count ...", the oldest first. Buckets are numbered from
-- 1970 on. If a later bucket has been counted already, the clock has gone back: time stands still until
-- the clock has caught up. If it has gone back by more than a window and one bucket, all buckets are
-- moved so that the newest is the next one.
--
-- Numbers: the limit, the buckets per window, and the width of a bucket in µs.

kinds.slidingwindow = { keys = 1, numbers = 3 }

local longest_window = 30000 -- bytes of 1001 buckets

-- read_buckets parses the list of buckets, which must be in order. It returns false if it is foreign.
local function read_buckets(s, list, width)
	if list == '' or string.gsub(list, ' %d+:%d+', '') ~= '' then return false end
	local before = 0
	for bucket, count in string.gmatch(list, ' (%d+):(%d+)') do
		bucket, count = number(bucket, before, most_exact / width - 1), number(count, 0, most_tokens)
		if not bucket or not count then return false end
		s.held[#s.held + 1] = { bucket, count }
		before = bucket
	end
	return true
end

-- converted returns the bucket for the counts of a bucket of a different width: that in which it
-- ended, or the current one if it has not ended.
local function converted(s, bucket, width)
	local last = (bucket + 1) * width - 1
	if last > now and bucket * width <= now then
		s.late, last = true, now
	end
	return floor(last / s.width)
end

-- read_window parses the value. It returns false if it is foreign.
local function read_window(s, held)
	if #held > longest_window then return false end
	local width, list = match(held, '^w(%d+)(.*)$')
	width = number(width, 1, most_exact)
	if not width or not read_buckets(s, list, width) then return false end
	local ahead = s.held[#s.held][1] - floor(now / width) - 1
	s.late = by_server and ahead * width > (s.buckets + 1) * s.width
	for _, part in ipairs(s.held) do
		if ahead > 0 and s.late then part[1] = max(part[1] - ahead, 0) end
		if width ~= s.width then part[1] = converted(s, part[1], width) end
		s.newest = max(s.newest, part[1])
	end
	return true
end

-- expiry returns when a bucket no longer counts.
local function expiry(s, bucket) return (bucket + s.buckets + 1) * s.width end

function kinds.slidingwindow.read(s, key, arg)
	s.key, s.limit, s.buckets, s.width = KEYS[key], tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	s.held, s.newest, s.used = {}, floor(now / s.width), 0
	local held = call('GET', s.key)
	if held and not read_window(s, held) then return false end
	local live = {}
	for _, part in ipairs(s.held) do
		if part[1] >= s.newest - s.buckets and part[2] > 0 then
			local last = live[#live]
			if last and last[1] == part[1] then -- narrower buckets of another config have the same number now
				last[2] = last[2] + part[2]
			else
				live[#live + 1] = part
			end
			s.used = s.used + part[2]
		end
	end
	if s.used > most_tokens then return false end
	s.held = live
	local wants = max(n, 0)
	s.ok, s.retry = wants <= s.limit - s.used, 0
	if wants > s.limit then
		s.retry = -1
	elseif not s.ok then
		local beyond = wants - (s.limit - s.used)
		for _, part in ipairs(s.held) do
			beyond = beyond - part[2]
			s.retry = expiry(s, part[1]) - now
			if beyond <= 0 then break end
		end
	end
	return true
end

local function keep_buckets(s)
	if #s.held == 0 then
		call('DEL', s.key)
		return
	end
	local text = { 'w' .. whole(s.width) }
	for _, part in ipairs(s.held) do
		text[#text + 1] = whole(part[1]) .. ':' .. whole(part[2])
	end
	call('SET', s.key, table.concat(text, ' '), 'PX', lifetime(expiry(s, s.held[#s.held][1])))
end

kinds.slidingwindow.keep = keep_buckets

local function count(s, k)
	local last = s.held[#s.held]
	if last and last[1] == s.newest then
		last[2] = last[2] + k
	else
		s.held[#s.held + 1] = { s.newest, k }
	end
	s.used = s.used + k
	keep_buckets(s)
end

function kinds.slidingwindow.take(s) count(s, n) end

function kinds.slidingwindow.charge(s) count(s, min(n, most_tokens - s.used)) end

-- refund gives back the oldest tokens that still count, which can only make the limit stricter.
function kinds.slidingwindow.refund(s, k)
	if age > 0 and floor((now - age) / s.width) < s.newest - s.buckets then return end
	while k > 0 and #s.held > 0 do
		local oldest = s.held[1]
		local back = min(k, oldest[2])
		oldest[2], k, s.used = oldest[2] - back, k - back, s.used - back
		if oldest[2] == 0 then table.remove(s.held, 1) end
	end
	keep_buckets(s)
end

function kinds.slidingwindow.report(s)
	local reset = 0
	if #s.held > 0 then reset = expiry(s, s.held[#s.held][1]) - now end
	return max(s.limit - s.used, 0), reset
end
