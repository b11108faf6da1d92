-- Forgets what was taken.
redis.call('UNLINK', unpack(KEYS)) -- a large log is freed apart
return { 1 }
