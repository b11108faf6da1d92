-- Token buckets whose tokens cost whole µs, on the server's clock: what tokenbucket.lua does, by the shortest way and for many keys at once.
-- Each key is decided about by itself.
--
-- ARGV, for each of the KEYS: what the permits cost in µs, what the whole bucket does, and what stands in the key behind its time.
--
-- The answer has two numbers for each: by how much the bucket would be overdrawn (µs), which refuses if it is above 0, and how long it takes to
-- be full without this request; below 0 where the key holds anything else: tokenbucket.lua is to decide.

-- Numbers are written by %d, which takes half as long as %.0f, in parts that a server of 32 bits can write so too.

local call, sub, find, format, floor = redis.call, string.sub, string.find, string.format, math.floor
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local answer, size = {}, 0
for i, key in ipairs(KEYS) do
	local terms = ARGV[3 * i]
	local full = now
	local held = redis.pcall('GET', key) -- the others' keys are to be decided about whatever is in this one
	if held then
		full = not held.err and sub(held, 17) == terms and not find(sub(held, 1, 16), '%D') and tonumber(sub(held, 1, 16))
		if full and full < now then full = now end
	end
	local over, owed = 0, -1
	if full then
		local cost, room = ARGV[3 * i - 2] + 0, ARGV[3 * i - 1] + 0
		local kept = full
		if full > now + room then -- the clock has gone back: the bucket is empty
			full, kept = now + room, now
		end
		local to = full + cost
		over, owed = to - now - room, full - now
		if over > 0 then to = full end
		if to ~= kept and cost > 0 then
			local life = (to + 1000 - now) / 1000 -- ms, until the bucket is full and a little longer
			life = life < 2147483648 and format('%d', life) or floor(life)
			call('SET', key, format('%d%09d', to / 1e9, to % 1e9) .. terms, 'PX', life)
		end
	end
	answer[size + 1], answer[size + 2] = over, owed
	size = size + 2
end
return answer
