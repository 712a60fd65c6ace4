-- Keeps a new schedule, unless its user has too many, or ordered it before. Those of an earlier user of the same name do
-- not count.
-- KEYS: the schedule; all schedules by their next time; those of the user; the three of known-orders.lua
-- ARGV: id, schedule, its first time in ms, limit of the user, since when the name is theirs in ms (0 = ever since),
--       the four of known-orders.lua
-- Answers {"created"}, {"exists", id}, {"conflict", id} or {"quota", number}.
-- The client sends it again when a connection broke before the answer came.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'created' } end
local known = knownOrder(KEYS[4], ARGV[6])
if known then return known end
local limit, sinceMs = tonumber(ARGV[4]), tonumber(ARGV[5])
local kept = redis.call('SCARD', KEYS[3])
if kept >= limit and sinceMs > 0 then
  kept = 0
  local prefix = KEYS[1]:sub(1, -#ARGV[1] - 1)
  for _, id in ipairs(redis.call('SMEMBERS', KEYS[3])) do
    local schedule = redis.call('HGET', prefix .. id, 'schedule')
    if schedule and cjson.decode(schedule).createdMs >= sinceMs then kept = kept + 1 end
  end
end
if kept >= limit then return { 'quota', tostring(kept) } end
redis.call('HSET', KEYS[1], 'schedule', ARGV[2], 'nextMs', ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[3], ARGV[1])
knowOrder(ARGV[1], { KEYS[4], KEYS[5], KEYS[6] }, { ARGV[6], ARGV[7], ARGV[8], ARGV[9] })
return { 'created' }
