-- Stores a new schedule, unless its user has too many, or ordered it before.
-- KEYS: the schedule; all schedules by their next time; those of the user; the three of known-orders.lua
-- ARGV: id, schedule, its first time in ms, limit of the user, the four of known-orders.lua
-- Returns {"created"}, {"exists", id}, {"conflict", id} or {"quota", number}. The client library sends the call again
-- if the connection broke before the answer arrived.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'created' } end
local known = knownOrder(KEYS[4], ARGV[5])
if known then return known end
local kept = redis.call('SCARD', KEYS[3])
if kept >= tonumber(ARGV[4]) then return { 'quota', tostring(kept) } end
redis.call('HSET', KEYS[1], 'schedule', ARGV[2], 'nextMs', ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[3], ARGV[1])
knowOrder(ARGV[1], { KEYS[4], KEYS[5], KEYS[6] }, { ARGV[5], ARGV[6], ARGV[7], ARGV[8] })
return { 'created' }
