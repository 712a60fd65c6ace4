-- Stores a token that is about to be issued, unless its user has too many. Removes expired ones.
-- KEYS: the token; the user's by their expiry; all by their expiry
-- ARGV: id, the token as JSON, its expiry in ms, limit of the user
-- Returns 1, or 0 if there are too many.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', nowMs)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', nowMs)
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[2])
redis.call('PEXPIREAT', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('PEXPIREAT', KEYS[2], ARGV[3], 'NX')
redis.call('PEXPIREAT', KEYS[2], ARGV[3], 'GT')
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
return 1
