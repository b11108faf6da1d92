-- The last part of each decision: look at all limits, and write only if all of them agree.
--
-- The reply has five numbers per limit: whether it agrees, its limit, the remaining tokens, after how
-- many µs to retry (-1 for never), and after how many µs all tokens have returned. If a key holds a
-- foreign value, the reply is the single number -1.

local states, all = {}, true
local key, arg = 1, 5
while arg <= #ARGV do
	local kind = kinds[ARGV[arg]]
	local s = { kind = kind }
	if not kind.read(s, key, arg + 1) then return { -1 } end
	states[#states + 1] = s
	all = all and s.ok
	key, arg = key + kind.keys, arg + kind.numbers + 1
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
