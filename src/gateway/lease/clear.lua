--[[
Frees those suspects of a device that cannot be a running stream any more.

  ARGV[5]  the device
  ARGV[6]  how many readers the device counted, or "" if it does not report them
  ARGV[7]  the `now` of tidy.lua, before the device was asked, ms
  ARGV[8]  if the device does not report them: how long suspects stay in use, ms

By number: let "settled" be the grants of live replicas whose streams had begun before the device was
asked, and that still hold them. As many suspects stay as there are readers that no settled grant
accounts for, whoever they are; the oldest of the others are freed. So the streams in use cover what the
device counts, and one outside reader keeps one stream in use, not those of all suspects. A grant that is
not settled does not count, because its stream may begin only after the device was asked; the same goes for
one with a stream that broke off and is being reopened, until it has begun. A number cannot distinguish a
suspect that is streaming from a settled grant whose stream has ended, nor which of two suspects is streaming,
nor what a suspect may still send. The result may be one stream too many at the device, which rejects it
(busy), and the request continues to wait.

Suspects younger than the question stay. If the device does not report its readers, suspects are freed
ARGV[8] ms after their replica lapsed, by when it has cut its own streams.

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

-- Suspects since before the given time, oldest requests first.
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
