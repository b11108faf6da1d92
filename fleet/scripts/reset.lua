-- Forgets what was taken.
redis.call('DEL', unpack(KEYS))
return { 1 }
