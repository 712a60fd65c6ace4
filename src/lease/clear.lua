--[[
Frees the suspects of a device that can be no stream any more.

  ARGV[5]  the device
  ARGV[6]  how many readers the device counted, or "" when it cannot tell
  ARGV[7]  the `now` of tidy.lua, before the device was asked, ms
  ARGV[8]  where the device cannot tell: how long suspects stay in use, ms
  ARGV[9]  "1": the device knows leases by name; then those follow that it was asked for, does not
           serve, and refuses from now on

By name, exactly those are freed. None of them streams, and a request of theirs that is still on its
way, however long, is refused when it arrives. This holds whatever happened to their replica.

By number: let "settled" be the grants of live replicas whose streams had begun before the device was
asked, and that still hold their place. Suspects are freed when readers <= settled. A grant that is not
settled counts for nothing: its stream may begin only after the device was asked; so does one of
which a stream broke off and is opened again, until it has begun. A number cannot tell a suspect that
streams from a settled grant whose stream has ended, nor what a suspect may still send; what comes
of that is a stream too many at the device, which refuses it (busy), and the request goes on waiting.

Suspects younger than the question stay. Where the device cannot tell, suspects are freed ARGV[8] ms
after their replica lapsed, by when it has cut its own streams.

Returns how many places were freed.
]]
local device, readers, asked = ARGV[5], ARGV[6], tonumber(ARGV[7])
enter()

local function settled()
  local count = 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'on:' .. device, '-inf', '(' .. asked)) do
    if not redis.call('ZSCORE', P .. 'sus:' .. device, id) then count = count + 1 end
  end
  return count
end

-- Those of which there are suspects still, older than the question and in the same turn.
local function suspectsNamed(names)
  local found = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'sus:' .. device, '-inf', '(' .. asked)) do
    if names[nameOf(readRequest(id))] then found[#found + 1] = id end
  end
  return found
end

local function suspectsFreed()
  if ARGV[9] == '1' then
    local names = {}
    for i = 10, #ARGV do names[ARGV[i]] = true end
    return suspectsNamed(names)
  end
  local bound = '(' .. asked
  if readers == '' then bound = tostring(now - ARGV[8])
  elseif tonumber(readers) > settled() then return {} end
  return redis.call('ZRANGEBYSCORE', P .. 'sus:' .. device, '-inf', bound)
end

local freed = suspectsFreed()
readRequests(freed)
for _, id in ipairs(freed) do
  local request = readRequest(id)
  local rest = {}
  for _, name in ipairs(request.devices) do
    if name ~= device then rest[#rest + 1] = name end
  end
  freePlace(request, device)
  request.devices = rest
  request.rest = nil
  if #rest == 0 then dropRequest(request)
  else noteChange(request) end
end
if #freed > 0 then pump({ device }) end
writeBack()
return #freed
