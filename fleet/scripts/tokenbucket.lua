-- A token bucket, as the time at which it will be full (GCRA).
--
-- A token costs a + b/d µs, so that time is a pair too: q + r/d µs, with r below d. The key holds "q r a b d": without the
-- last three the time would mean another number of tokens once the rate has changed. n*b must stay below 2^53.
--
-- Numbers: a, b, d, and the burst.

kinds.tokenbucket = { keys = 1, numbers = 4 }

-- cost is what k tokens cost, as a pair.
local function cost(s, k)
	if s.b == 0 then return k * s.a, 0 end
	local parts = k * s.b
	local carry = floor(parts / s.d)
	return k * s.a + carry, parts - carry * s.d
end

-- plus is a sum of pairs.
local function plus(s, q1, r1, q2, r2)
	local q, r = q1 + q2, r1 + r2
	if r >= s.d then return q + 1, r - s.d end
	return q, r
end

-- minus is a difference of pairs.
local function minus(s, q1, r1, q2, r2)
	if r1 < r2 then return q1 - q2 - 1, r1 - r2 + s.d end
	return q1 - q2, r1 - r2
end

-- pays reports whether q + r/d µs are enough for k tokens.
local function pays(s, k, q, r)
	local cost_q, cost_r = cost(s, k)
	return cost_q < q or cost_q == q and cost_r <= r
end

-- affordable is how many tokens q + r/d µs are enough for. The quotient of doubles may be one off.
local function affordable(s, q, r)
	if q < 0 then return 0 end
	if s.b == 0 then return min(floor(q / s.a), s.burst) end
	local k = min(floor((q + r / s.d) / (s.a + s.b / s.d)), s.burst)
	while k > 0 and not pays(s, k, q, r) do k = k - 1 end
	while k < s.burst and pays(s, k + 1, q, r) do k = k + 1 end
	return k
end

-- changed is when the bucket is full that by another rate would be at q + r/d, with as many tokens missing.
local function changed(s, q, r, a, b, d)
	local missing = (q - now + r / d) / (a + b / d)
	return now + ceil(min(missing, s.burst) * (s.a + s.b / s.d)), 0
end

-- read_bucket is the time that the key holds, or nothing where it holds something else.
local function read_bucket(s, held)
	if string.sub(held, -#s.rate) == s.rate then
		local q, r = match(held, '^(%d+) (%d+) %d+ %d+ %d+$')
		return tonumber(q), tonumber(r)
	end
	local q, r, a, b, d = match(held, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
	if not q or #held > 100 or tonumber(d) == 0 then return nil end
	return changed(s, tonumber(q), tonumber(r), tonumber(a), tonumber(b), tonumber(d))
end

function kinds.tokenbucket.look(s, key, arg)
	local a, b, d = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
	s.key, s.rate = KEYS[key], ' ' .. a .. ' ' .. b .. ' ' .. d
	s.a, s.b, s.d, s.burst = tonumber(a), tonumber(b), tonumber(d), tonumber(ARGV[arg + 3])
	s.q, s.r, s.limit = now, 0, s.burst
	local held = call('GET', s.key)
	if held then
		local q, r = read_bucket(s, held)
		if not q then return false end
		-- Callers at the exact cadence, rounded to µs, would lose the rest of one each time they come late.
		if q >= now or s.b > 0 and q == now - 1 then s.q, s.r = q, r end
	end
	local full_q, full_r = cost(s, s.burst)
	s.most_q, s.most_r = now + full_q, full_r
	local wants = max(n, 0)
	if wants > s.burst then
		s.ok, s.retry = false, -1
		return true
	end
	local cost_q, cost_r = cost(s, wants)
	s.next_q, s.next_r = plus(s, s.q, s.r, cost_q, cost_r)
	local over_q, over_r = minus(s, s.next_q, s.next_r, s.most_q, s.most_r)
	if over_r > 0 then over_q = over_q + 1 end
	s.ok, s.retry = over_q <= 0, max(over_q, 0)
	return true
end

local function keep_bucket(s)
	call('SET', s.key, format('%.0f %.0f', s.q, s.r) .. s.rate, 'PX', lifetime(s.q + 1))
end

function kinds.tokenbucket.take(s)
	s.q, s.r = s.next_q, s.next_r
	keep_bucket(s)
end

function kinds.tokenbucket.refund(s, k)
	local cost_q, cost_r = cost(s, min(k, s.burst))
	s.q, s.r = minus(s, s.q, s.r, cost_q, cost_r)
	if s.q >= now then keep_bucket(s) else call('DEL', s.key) end
end

function kinds.tokenbucket.tell(s)
	local room_q, room_r = minus(s, s.most_q, s.most_r, s.q, s.r)
	local reset = s.q - now
	if s.r > 0 then reset = reset + 1 end
	return affordable(s, room_q, room_r), max(reset, 0)
end
