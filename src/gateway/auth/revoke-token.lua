-- Revokes a token; every later poll sees it. Forgets revocations of tokens that have expired anyway.
-- KEYS: the token; the revoked ones by the number of their revocation; the same by their expiry; the last such
-- number
-- ARGV: id, its expiry in ms
-- Returns 1, or 0 if the token does not exist or was revoked before.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', nowMs)) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
end
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HSETNX', KEYS[1], 'revokedMs', string.format('%d', nowMs)) == 0 then return 0 end
local revoked = ARGV[1] .. ' ' .. ARGV[2]
-- Larger than every earlier number, even those that Redis has lost: gateways that saw them ask for larger ones only.
local number = string.format('%d', math.max(tonumber(redis.call('GET', KEYS[4]) or '0') + 1, nowMs))
redis.call('SET', KEYS[4], number)
redis.call('ZADD', KEYS[2], number, revoked)
redis.call('ZADD', KEYS[3], ARGV[2], revoked)
return 1
