-- Keeps a new export, unless its user has too many that have not ended, or ordered it before. Those of an earlier user of
-- the same name do not count.
-- KEYS: the export; all exports; those of the user; the user's that have not ended; all that have not ended;
--       the three of known-orders.lua; of a run: its schedule; all schedules by their next time
-- ARGV: id, order, its creation in ms, limit of the user, since when the name is theirs in ms (0 = ever since),
--       the four of known-orders.lua;
--       of a run: the time in ms that was next, the one of the run, the one that is next now, the id of the schedule
-- Returns {"created"}, {"exists", id}, {"conflict", id}, {"quota", number}, or {"passed"} if the run has been dealt
-- with or its schedule no longer exists. Storing the export and marking its run is one atomic change, so no run becomes
-- two exports. The client library sends the call again if the connection broke before the answer arrived.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'created' } end
local known = knownOrder(KEYS[6], ARGV[6])
if known then return known end
if KEYS[9] and redis.call('HGET', KEYS[9], 'nextMs') ~= ARGV[10] then return { 'passed' } end
local limit, sinceMs = tonumber(ARGV[4]), tonumber(ARGV[5])
local running = redis.call('SCARD', KEYS[4])
if running >= limit and sinceMs > 0 then
  running = 0
  for _, id in ipairs(redis.call('SMEMBERS', KEYS[4])) do
    if tonumber(redis.call('ZSCORE', KEYS[3], id) or 0) >= sinceMs then running = running + 1 end
  end
end
if running >= limit then return { 'quota', tostring(running) } end
redis.call('HSET', KEYS[1], 'order', ARGV[2], 'state', 'queued', 'stage', 'waiting', 'writer', '', 'revision', '1')
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('SADD', KEYS[5], ARGV[1])
knowOrder(ARGV[1], { KEYS[6], KEYS[7], KEYS[8] }, { ARGV[6], ARGV[7], ARGV[8], ARGV[9] })
if KEYS[9] then
  redis.call('HSET', KEYS[9], 'nextMs', ARGV[12], 'lastMs', ARGV[11], 'lastExportId', ARGV[1])
  redis.call('HDEL', KEYS[9], 'error')
  redis.call('ZADD', KEYS[10], ARGV[12], ARGV[13])
end
return { 'created' }
