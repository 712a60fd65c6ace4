--[[
Asks for one stream on each of several devices at once. All are granted together or none is.

  ARGV[3]  id of the request, chosen by the caller
  ARGV[4]  devices, separated by commas, each once
  ARGV[5]  class: interactive | bulk
  ARGV[6]  user

Returns {state, position}: "g" (granted), 0; "w" (waits), n-th in line;
"lapsed", 0 when the replica has no lease of its own and must send a heartbeat first.
]]
local id, devices = ARGV[3], ARGV[4]
local known = readRequest(id)
if known then
  if known.state == 'w' then return { 'w', rank(known) + 1 } end
  return { 'g', 0 }
end
-- Whoever has no heartbeat is never reaped, and what it asked for would stay for ever.
if not redis.call('ZSCORE', P .. 'hb', REPLICA) then return { 'lapsed', 0 } end
local now = nowMs()
local tag = putRequest(id, devices, ARGV[5], ARGV[6], 'w', now)
local request = readRequest(id)
for _, device in ipairs(request.devices) do
  redis.call('ZADD', P .. 'q:' .. device, tag, request.member)
end
if mayStart(request) then
  grant(request, now)
  return { 'g', 0 }
end
return { 'w', rank(request) + 1 }
