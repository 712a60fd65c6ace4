-- Publishes one program's devices to the other programs on this Redis, and returns theirs.
-- KEYS: ids of the programs by expiry; their rosters by id
-- ARGV: id, roster, its lifetime in ms
-- Returns the rosters of all other programs.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs)) do redis.call('HDEL', KEYS[2], id) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
redis.call('ZADD', KEYS[1], nowMs + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local others = {}
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if all[i] ~= ARGV[1] then others[#others + 1] = all[i + 1] end
end
return others
