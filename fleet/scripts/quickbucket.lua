-- A token bucket whose tokens cost whole µs, by the clock of the server. It does what tokenbucket.lua
-- does, in less time and for many keys at once. It decides about each key separately.
--
-- ARGV, for each of the KEYS: the cost of the requested tokens in µs, that of a full bucket, and the
-- end of the key's value, after its time.
--
-- The reply has two numbers per key: by how many µs the request would overdraw the bucket, which
-- refuses it if above 0, and after how many µs the bucket would be full without the request. The second
-- is negative if the key holds any other value; tokenbucket.lua has to decide then.

-- Numbers are written by %d, which takes half the time of %.0f. They are split so that a 32-bit server
-- can write them too.

local call, sub, find, format, floor = redis.call, string.sub, string.find, string.format, math.floor
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local answer, size = {}, 0
for i, key in ipairs(KEYS) do
	local terms = ARGV[3 * i]
	local full = now
	local held = redis.pcall('GET', key) -- pcall: a foreign value must not stop the decisions about other keys
	if held then
		full = not held.err and sub(held, 17) == terms and not find(sub(held, 1, 16), '%D') and tonumber(sub(held, 1, 16))
		if full and full < now then full = now end
	end
	local over, owed = 0, -1
	if full then
		local cost, room = ARGV[3 * i - 2] + 0, ARGV[3 * i - 1] + 0
		local kept = full
		if full > now + room then -- the clock has gone back, and the bucket is empty
			full, kept = now + room, now
		end
		local to = full + cost
		over, owed = to - now - room, full - now
		if over > 0 then to = full end
		if to ~= kept and cost > 0 then
			local life = (to + 1000 - now) / 1000 -- in ms, until the bucket is full, rounded up
			life = life < 2147483648 and format('%d', life) or floor(life)
			call('SET', key, format('%d%09d', to / 1e9, to % 1e9) .. terms, 'PX', life)
		end
	end
	answer[size + 1], answer[size + 2] = over, owed
	size = size + 2
end
return answer
