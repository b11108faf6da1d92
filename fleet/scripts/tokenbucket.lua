-- A token bucket, stored as the time at which it will be full (GCRA).
--
-- A token costs a + b/d µs, so that time is a pair too: q + r/d µs, with r below d. The key holds
-- "q r a b d m". Without a, b and d, the time would mean a different number of tokens after a
-- change of the rate. m is the most tokens that can be missing, which is the burst. A time later
-- than m tokens take was written before the clock went back; then the bucket is empty. burst*b must
-- stay below 2^53.
--
-- After a settlement more tokens than the burst may be missing. Then m is their number, with a 0 before
-- it: these tokens are a debt, which a change of the rate and the burst must not reduce.
--
-- Numbers: a, b, d, and the burst.

kinds.tokenbucket = { keys = 1, numbers = 4 }

-- cost returns what k tokens cost, as a pair. Only a debt can be too large for an exact number, and is
-- rounded up.
local function cost(s, k)
	if s.b == 0 then return k * s.a, 0 end
	local parts = k * s.b
	if parts >= most_exact then return k * s.a + ceil(parts / s.d) + 1, 0 end
	local carry = floor(parts / s.d)
	return k * s.a + carry, parts - carry * s.d
end

-- plus adds two pairs.
local function plus(s, q1, r1, q2, r2)
	local q, r = q1 + q2, r1 + r2
	if r >= s.d then return q + 1, r - s.d end
	return q, r
end

-- minus subtracts two pairs.
local function minus(s, q1, r1, q2, r2)
	if r1 < r2 then return q1 - q2 - 1, r1 - r2 + s.d end
	return q1 - q2, r1 - r2
end

-- pays returns whether k tokens cost at most q + r/d µs.
local function pays(s, k, q, r)
	local cost_q, cost_r = cost(s, k)
	return cost_q < q or cost_q == q and cost_r <= r
end

-- affordable returns how many tokens q + r/d µs pay for. The quotient of doubles is off by at most one.
local function affordable(s, q, r)
	if q < 0 then return 0 end
	if s.b == 0 then return min(floor(q / s.a), s.burst) end
	local k = min(floor((q + r / s.d) / (s.a + s.b / s.d)), s.burst)
	if k > 0 and not pays(s, k, q, r) then return k - 1 end
	if k < s.burst and pays(s, k + 1, q, r) then return k + 1 end
	return k
end

-- most_missing returns how many tokens can be missing, with a debt: as many as arrive in the longest
-- time, in up to 15 digits. The 2 µs are more than its product with the cost is off by.
local function most_missing(s)
	return min(floor((longest - 2) / (s.a + s.b / s.d)), 999999999999999)
end

-- changed converts the time q + r/d of a bucket with a different rate, keeping the missing tokens.
local function changed(s, q, r, a, b, d)
	local missing = (q - now + r / d) / (a + b / d)
	local most = s.debt and most_missing(s) or s.burst
	return now + ceil(min(missing, most) * (s.a + s.b / s.d)), 0
end

-- read_bucket parses the value. It returns false if it is foreign.
local function read_bucket(s, held)
	if #held > 120 then return false end
	local q, r, a, b, d, m = match(held, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
	q, r, a, b, d = number(q, 0, most_exact), number(r, 0, most_exact), number(a, 0, most_exact), number(b, 0, most_exact), number(d, 1, most_exact)
	s.debt = sub(m or '', 1, 1) == '0'
	m = number(m, 1, most_exact)
	if not (q and r and a and b and d and m) or r >= d or b >= d or a + b == 0 then return false end
	local most = ceil(m * (a + b / d))
	if most > longest then return false end
	if by_server and q > now + most then
		s.late, q, r = true, now + most, 0
	end
	if a ~= s.a or b ~= s.b or d ~= s.d then
		q, r = changed(s, q, r, a, b, d)
		s.late = s.late or s.debt and q > now -- to be written with the time to live at this rate
	end
	-- A caller at the exact rate may be up to 1us late by rounding. It must not lose that time.
	if q >= now or s.b > 0 and q == now - 1 then s.q, s.r = q, r end
	return true
end

function kinds.tokenbucket.read(s, key, arg)
	s.key, s.a, s.b, s.d = KEYS[key], tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
	s.burst = tonumber(ARGV[arg + 3])
	s.q, s.r, s.limit = now, 0, s.burst
	local held = call('GET', s.key)
	if held and not read_bucket(s, held) then return false end
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

-- keep_bucket writes the bucket. After a change of the burst, or with a debt, more tokens than the burst
-- may be missing.
local function keep_bucket(s)
	local missing, mark = s.burst, ''
	if s.q > s.most_q then
		missing = min(ceil((s.q + 1 - now) / (s.a + s.b / s.d)), most_missing(s))
		if s.debt then mark = '0' end
	end
	call('SET', s.key, format('%.0f %.0f %.0f %.0f %.0f %s%.0f', s.q, s.r, s.a, s.b, s.d, mark, missing), 'PX', lifetime(s.q + 1))
end

kinds.tokenbucket.keep = keep_bucket

function kinds.tokenbucket.take(s)
	s.q, s.r = s.next_q, s.next_r
	keep_bucket(s)
end

function kinds.tokenbucket.charge(s)
	local cost_q, cost_r = cost(s, n)
	local q, r = plus(s, s.q, s.r, cost_q, cost_r)
	local latest = now + floor(most_missing(s) * (s.a + s.b / s.d)) - 1
	if q > latest then q, r = max(s.q, latest), 0 end
	s.q, s.r, s.debt = q, r, true
	keep_bucket(s)
end

-- refund gives back what cannot have returned since it was taken, assuming that the bucket was full.
function kinds.tokenbucket.refund(s, k)
	local cost_q, cost_r = cost(s, min(k, s.burst))
	cost_q = cost_q - age
	if cost_q < 0 then return end
	s.q, s.r = minus(s, s.q, s.r, cost_q, cost_r)
	if s.q >= now then keep_bucket(s) else call('DEL', s.key) end
end

function kinds.tokenbucket.report(s)
	local room_q, room_r = minus(s, s.most_q, s.most_r, s.q, s.r)
	local reset = s.q - now
	if s.r > 0 then reset = reset + 1 end
	return affordable(s, room_q, room_r), max(reset, 0)
end
