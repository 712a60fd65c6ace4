--[[
Frees the suspects of a device that can be no stream any more.

  ARGV[5]  the device
  ARGV[6]  how many readers the device counted, or "" when it cannot tell
  ARGV[7]  the `now` of tidy.lua, before the device was asked, ms
  ARGV[8]  where the device cannot tell: how long suspects stay in use, ms

By number: let "settled" be the grants of live replicas whose streams had begun before the device was
asked, and that still hold theirs. As many suspects stay as there are readers that no settled grant
accounts for, whoever they are; the oldest of the others go. So what is in use covers what the device counts,
and a reader from outside keeps one stream in use, not those of all suspects. A grant that is not settled counts
for nothing: its stream may begin only after the device was asked; so does one of which a stream broke off
and is opened again, until it has begun. A number cannot tell a suspect that streams from a settled grant
whose stream has ended, nor which of two suspects streams, nor what a suspect may still send; what comes
of that is a stream too many at the device, which refuses it (busy), and the request goes on waiting.

Suspects younger than the question stay. Where the device cannot tell, suspects are freed ARGV[8] ms
after their replica lapsed, by when it has cut its own streams.

Returns how many streams were freed.
]]
local device, readers, asked = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
enter()

local function settled()
  local count = 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'on:' .. device, '-inf', '(' .. asked)) do
    if not redis.call('ZSCORE', P .. 'sus:' .. device, id) then count = count + 1 end
  end
  return count
end

-- Suspects since before the time, the oldest requests first.
local function suspectsBefore(time)
  local ids, suspects = redis.call('ZRANGEBYSCORE', P .. 'sus:' .. device, '-inf', time), {}
  readRequests(ids)
  for i, id in ipairs(ids) do suspects[i] = readRequest(id) end
  table.sort(suspects, function(a, b) return a.member < b.member end)
  return suspects
end

local function suspectsFreed()
  if not readers then return suspectsBefore(now - ARGV[8]) end
  local suspects = suspectsBefore('(' .. asked)
  local kept = math.max(0, readers - settled())
  return { unpack(suspects, 1, math.max(0, #suspects - kept)) }
end

local freed = suspectsFreed()
for _, request in ipairs(freed) do
  local rest = {}
  for _, name in ipairs(request.devices) do
    if name ~= device then rest[#rest + 1] = name end
  end
  freeStream(request, device)
  request.devices = rest
  request.rest = nil
  if #rest == 0 then dropRequest(request)
  else noteChange(request) end
end
if #freed > 0 then pump({ device }) end
writeBack()
return #freed
