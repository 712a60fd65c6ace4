-- Stores a ticket until it is used or expires, unless its user has too many unexpired ones.
-- KEYS: the ticket; the user's by their expiry
-- ARGV: what it gives as JSON, id, its expiry in ms, limit of the user
-- Returns 1, or 0 if there are too many.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', nowMs)
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
redis.call('PEXPIREAT', KEYS[2], ARGV[3], 'NX')
redis.call('PEXPIREAT', KEYS[2], ARGV[3], 'GT')
return 1
