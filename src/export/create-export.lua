-- Keeps a new export, unless its user has too many that have not ended, or ordered it before.
-- KEYS: the export; all exports; those of the user; the user's that have not ended; all that have not ended;
--       the idempotency key of the order ("" = none); the schedule whose run it is ("" = none); all schedules by their
--       next time
-- ARGV: id, order, its creation in ms, limit of the user, hash of the order, how long the key is kept in ms;
--       of a run: the time in ms that was next, the one of the run, the one that is next now, the id of the schedule
-- Answers {"created"}, {"exists", id}, {"conflict", id}, {"quota", number}, or {"passed"}: the run has been dealt with,
-- or its schedule is gone. The export and the note that it was made are one change: no run becomes two.
-- The client sends it again when a connection broke before the answer came.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'created' } end
if KEYS[6] ~= '' then
  local known = redis.call('GET', KEYS[6])
  if known then
    local id, hash = known:match('^(%S+) (%S+)$')
    return { hash == ARGV[5] and 'exists' or 'conflict', id }
  end
end
if KEYS[7] ~= '' and redis.call('HGET', KEYS[7], 'nextMs') ~= ARGV[7] then return { 'passed' } end
local running = redis.call('SCARD', KEYS[4])
if running >= tonumber(ARGV[4]) then return { 'quota', tostring(running) } end
redis.call('HSET', KEYS[1], 'order', ARGV[2], 'state', 'queued', 'stage', 'waiting', 'writer', '', 'revision', '1')
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('SADD', KEYS[5], ARGV[1])
if KEYS[6] ~= '' then redis.call('SET', KEYS[6], ARGV[1] .. ' ' .. ARGV[5], 'PX', ARGV[6]) end
if KEYS[7] ~= '' then
  redis.call('HSET', KEYS[7], 'nextMs', ARGV[9], 'lastMs', ARGV[8], 'lastExportId', ARGV[1])
  redis.call('HDEL', KEYS[7], 'error')
  redis.call('ZADD', KEYS[8], ARGV[9], ARGV[10])
end
return { 'created' }
