-- Stores why a run of a schedule did not become an export, unless another worker has dealt with the run or the schedule
-- no longer exists.
-- KEYS: the schedule; all schedules by their next time
-- ARGV: id, the time in ms that was next, the one that is next now ("" = the same: the run is tried again), error
-- Returns 1 or 0.
if redis.call('HGET', KEYS[1], 'nextMs') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'error', ARGV[4])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'nextMs', ARGV[3])
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
end
return 1
