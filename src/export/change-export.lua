-- Changes fields of an export, when it is in one of the states that allow it and, where a writer is named, still has
-- that writer: a worker that lost its job to another one changes nothing any more.
-- KEYS: the export; the user's that have not ended; all that have not ended
-- ARGV: id, writer ("*" = any), states with commas around each ("*" = any), channel, "ends", "begins" (again) or "", then fields and values
-- Answers {1 or 0, the state now, the writer before}; the state is "" when there is no such export.
local state, writer = unpack(redis.call('HMGET', KEYS[1], 'state', 'writer'))
if not state then return { 0, '', '' } end
local mayWrite = ARGV[2] == '*' or ARGV[2] == writer
local isState = ARGV[3] == '*' or ARGV[3]:find(',' .. state .. ',', 1, true) ~= nil
if not (mayWrite and isState) then return { 0, state, writer } end
for i = 6, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
if ARGV[5] == 'ends' then
  redis.call('SREM', KEYS[2], ARGV[1])
  redis.call('SREM', KEYS[3], ARGV[1])
end
if ARGV[5] == 'begins' then
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('SADD', KEYS[3], ARGV[1])
end
redis.call('PUBLISH', ARGV[4], ARGV[1])
return { 1, redis.call('HGET', KEYS[1], 'state'), writer }
