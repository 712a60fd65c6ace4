-- Keeps a new schedule, unless its user has too many, or ordered it before.
-- KEYS: the schedule; all schedules by their next time; those of the user; the idempotency key of the order ("" = none)
-- ARGV: id, schedule, its first time in ms, limit of the user, hash of the order, how long the key is kept in ms
-- Answers {"created"}, {"exists", id}, {"conflict", id} or {"quota", number}.
-- The client sends it again when a connection broke before the answer came.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'created' } end
if KEYS[4] ~= '' then
  local known = redis.call('GET', KEYS[4])
  if known then
    local id, hash = known:match('^(%S+) (%S+)$')
    return { hash == ARGV[5] and 'exists' or 'conflict', id }
  end
end
local kept = redis.call('SCARD', KEYS[3])
if kept >= tonumber(ARGV[4]) then return { 'quota', tostring(kept) } end
redis.call('HSET', KEYS[1], 'schedule', ARGV[2], 'nextMs', ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[3], ARGV[1])
if KEYS[4] ~= '' then redis.call('SET', KEYS[4], ARGV[1] .. ' ' .. ARGV[5], 'PX', ARGV[6]) end
return { 'created' }
