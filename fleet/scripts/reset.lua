-- Deletes what was taken.
redis.call('UNLINK', unpack(KEYS)) -- frees a large log in the background
return { 1 }
