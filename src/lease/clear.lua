--[[
Frees the suspects of a device when none of them can be a stream any more.

  ARGV[5]  the device
  ARGV[6]  how many readers the device counted, or "" when it cannot tell
  ARGV[7]  the `now` of tidy.lua, before the device was asked, ms
  ARGV[8]  where the device cannot tell: how long suspects stay in use, ms

Let "settled" be the grants of live replicas whose streams had begun before the device was asked,
and that still hold their place. Suspects are freed when readers <= settled. Each stream that the
device counted then was a settled grant's, a younger grant's or a suspect's; so at most as many
suspects were streaming as settled grants had ended their stream already, and those keep their
place until they are given back: streams never exceed places. A grant that is not settled counts
for nothing: its stream may begin only after the device was asked; so does one of which a stream
broke off and is opened again, until it has begun. Suspects younger than the
question stay. Where the device cannot tell, suspects are freed ARGV[8] ms after their replica
lapsed, by when it has cut its own streams.

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

local bound = '(' .. asked
if readers == '' then
  bound = tostring(now - ARGV[8])
elseif tonumber(readers) > settled() then
  return 0
end
local freed = redis.call('ZRANGEBYSCORE', P .. 'sus:' .. device, '-inf', bound)
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
