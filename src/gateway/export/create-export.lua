-- Stores a new export, unless its user has too many that have not ended, or ordered it before.
-- KEYS: the export; all exports; those of the user; the user's that have not ended; all that have not ended;
--       the three of known-orders.lua; the schedule whose run it is ("" = none); all schedules by their next time
-- ARGV: id, order, its creation in ms, limit of the user, the four of known-orders.lua;
--       of a run: the time in ms that was next, the one of the run, the one that is next now, the id of the schedule
-- Returns {"created"}, {"exists", id}, {"conflict", id}, {"quota", number}, or {"passed"} if the run has been dealt
-- with or its schedule no longer exists. Storing the export and marking its run is one atomic change, so no run becomes
-- two exports. The client library sends the call again if the connection broke before the answer arrived.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'created' } end
local known = knownOrder(KEYS[6], ARGV[5])
if known then return known end
if KEYS[9] ~= '' and redis.call('HGET', KEYS[9], 'nextMs') ~= ARGV[9] then return { 'passed' } end
local running = redis.call('SCARD', KEYS[4])
if running >= tonumber(ARGV[4]) then return { 'quota', tostring(running) } end
redis.call('HSET', KEYS[1], 'order', ARGV[2], 'state', 'queued', 'stage', 'waiting', 'writer', '', 'revision', '1')
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('SADD', KEYS[5], ARGV[1])
knowOrder(ARGV[1], { KEYS[6], KEYS[7], KEYS[8] }, { ARGV[5], ARGV[6], ARGV[7], ARGV[8] })
if KEYS[9] ~= '' then
  redis.call('HSET', KEYS[9], 'nextMs', ARGV[11], 'lastMs', ARGV[10], 'lastExportId', ARGV[1])
  redis.call('HDEL', KEYS[9], 'error')
  redis.call('ZADD', KEYS[10], ARGV[11], ARGV[12])
end
return { 'created' }
