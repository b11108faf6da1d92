-- The last part of each decision: look at all limits, and write only if all of them agree.
--
-- The reply has five numbers per limit: whether it agrees, its limit, the remaining tokens, after how
-- many µs to retry (-1 for never), and after how many µs all tokens have returned. If a key holds a
-- foreign value, the reply is the single number -1. If the periods of a calendar quota do not contain
-- the time of the server, the reply is -2 and that time.
--
-- A settlement takes or gives back, whether the limits agree or not. Its key is written together with
-- that, so that the same settlement changes nothing if it comes again. The reply is 1, or 0 if it came
-- before.

local settlement = ARGV[5] ~= '0' and KEYS[#KEYS]
if settlement and call('GET', settlement) then return { 0 } end

local states, all = {}, true
local key, arg = 1, 6
while arg <= #ARGV do
	local kind = kinds[ARGV[arg]]
	local s = { kind = kind }
	if not kind.read(s, key, arg + 1) then return outside and { -2, now } or { -1 } end
	states[#states + 1] = s
	all = all and s.ok
	key, arg = key + kind.keys, arg + kind.numbers + 1
end

if settlement then
	for _, s in ipairs(states) do
		if n < 0 then s.kind.refund(s, -n) else s.kind.charge(s) end
	end
	call('SET', settlement, '', 'PX', ARGV[5])
	return { 1 }
end

local answer = {}
for i, s in ipairs(states) do
	local kind, at = s.kind, 5 * i - 4
	age = ages[i] or age
	if n < 0 then
		kind.refund(s, -n)
	elseif age < 0 then -- a check: nothing is written
	elseif n > 0 and all then
		kind.take(s)
	elseif n > 0 and s.late then
		kind.keep(s)
	end
	answer[at], answer[at + 1], answer[at + 3] = s.ok and 1 or 0, s.limit, s.retry
	answer[at + 2], answer[at + 4] = kind.report(s)
end
return answer
