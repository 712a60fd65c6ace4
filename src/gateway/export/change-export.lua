-- Changes fields of an export if it is in one of the given states and, if a writer is given, still has that writer, so
-- that a worker that lost its job to another changes nothing.
-- KEYS: the export; the user's that have not ended; all that have not ended; the files that are made, by their number
--       from 0; the files that may be read, likewise
-- ARGV: id, writer ("*" = any), states with commas around each ("*" = any), channel,
--       "ends", "publishes" (ends, and the finished files become those that may be read), "begins" (again),
--       "forgets" (the finished files) or "",
--       number of the first finished file, number of finished files, the files; number of readable files, these;
--       then fields and values. "publishes" drops the finished files from that first number on.
-- Returns {1 or 0, the new state, the previous writer}; the state is "" if the export does not exist.
local state, writer = unpack(redis.call('HMGET', KEYS[1], 'state', 'writer'))
if not state then return { 0, '', '' } end
local mayWrite = ARGV[2] == '*' or ARGV[2] == writer
local isState = ARGV[3] == '*' or ARGV[3]:find(',' .. state .. ',', 1, true) ~= nil
if not (mayWrite and isState) then return { 0, state, writer } end
local turn, first = ARGV[5], tonumber(ARGV[6])
if turn == 'ends' or turn == 'begins' or turn == 'forgets' then redis.call('UNLINK', KEYS[4]) end
local at = 7
local function keepFiles(key, from)
  local count = tonumber(ARGV[at])
  for i = 1, count do redis.call('HSET', key, from + i - 1, ARGV[at + i]) end
  at = at + count + 1
end
keepFiles(KEYS[4], first)
keepFiles(KEYS[5], 0)
for i = at, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
if turn == 'publishes' and redis.call('EXISTS', KEYS[4]) == 1 then
  for number = first, redis.call('HLEN', KEYS[4]) - 1 do redis.call('HDEL', KEYS[4], number) end
  redis.call('RENAME', KEYS[4], KEYS[5])
end
if turn == 'ends' or turn == 'publishes' then
  redis.call('SREM', KEYS[2], ARGV[1])
  redis.call('SREM', KEYS[3], ARGV[1])
end
if turn == 'begins' then
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('SADD', KEYS[3], ARGV[1])
end
redis.call('PUBLISH', ARGV[4], ARGV[1])
return { 1, redis.call('HGET', KEYS[1], 'state'), writer }
