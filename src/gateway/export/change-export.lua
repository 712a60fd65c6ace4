-- Changes fields of an export, when it is in one of the states that allow it and, where a writer is named, still has
-- that writer: a worker that lost its job to another one changes nothing any more.
-- KEYS: the export; the user's that have not ended; all that have not ended; the files that are made, by their number
--       from 0; the files that may be read, likewise
-- ARGV: id, writer ("*" = any), states with commas around each ("*" = any), channel,
--       "ends", "publishes" (ends, and the files that are made become those that may be read), "begins" (again),
--       "forgets" (the files that were made) or "",
--       number of the first file made, how many are made, the files; how many of the others are given, these;
--       then fields and values. "publishes" drops what is made from that first number on.
-- Answers {1 or 0, the state now, the writer before}; the state is "" when there is no such export.
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
