-- Says which kind of limit has written each of the KEYS, as a number of kindsByNumber in foreignkind.go.
-- It is 0 for any other value, and for none.
local forms = {
	'^%d+ %d+ %d+ %d+ %d+ %d+$',
	'^f%d+ %d+$',
	'^w%d+ [%d: ]+$',
	'^n%d+:%d+:%d+$',
	'^' .. string.rep('%d', 19) .. '$', -- ns since 1970
	'^q%d+ %d+ %d+$',
}
local answer = {}
for i, key in ipairs(KEYS) do
	local held = redis.pcall('GET', key)
	if type(held) == 'table' then held = redis.pcall('ZRANGE', key, 0, 0)[1] end -- not a text
	answer[i] = 0
	for kind, form in ipairs(forms) do
		if held and #held <= 30000 and string.match(held, form) then answer[i] = kind end
	end
end
return answer
