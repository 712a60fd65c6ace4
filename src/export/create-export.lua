-- Keeps a new export, unless its user has too many that have not ended, or ordered it before.
-- KEYS: the export; all exports; those of the user; the user's that have not ended; all that have not ended;
--       the idempotency key of the order ("" = none)
-- ARGV: id, order, its creation in ms, limit of the user, hash of the order, how long the key is kept in ms
-- Answers {"created"}, {"exists", id}, {"conflict", id} or {"quota", number}.
if KEYS[6] ~= '' then
  local known = redis.call('GET', KEYS[6])
  if known then
    local id, hash = known:match('^(%S+) (%S+)$')
    return { hash == ARGV[5] and 'exists' or 'conflict', id }
  end
end
local running = redis.call('SCARD', KEYS[4])
if running >= tonumber(ARGV[4]) then return { 'quota', tostring(running) } end
redis.call('HSET', KEYS[1], 'order', ARGV[2], 'state', 'queued', 'stage', 'waiting', 'writer', '', 'revision', '1')
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('SADD', KEYS[5], ARGV[1])
if KEYS[6] ~= '' then redis.call('SET', KEYS[6], ARGV[1] .. ' ' .. ARGV[5], 'PX', ARGV[6]) end
return { 'created' }
