--[[
While the state is recovered it may lack streams: Redis may have lost what it wrote last, or all, and
a replica that is silent cannot tell what it has. A device that knows leases by name can. Those that
it serves and nobody has told become suspects of an unknown replica: in use until their replica tells
of them, or the device does not serve them any more.

  ARGV[5]  the device
  ARGV[6]  and on: names of the leases that it serves

Returns how many places were taken; none when nothing is being recovered: what is unknown then has been
given back, and is about to end.
]]
local device = ARGV[5]
enter()
if not recovering() then return 0 end

local function unknown(id, turn)
  local request = newRequest({ id = id, state = 's', turn = turn, granted = now, devices = {}, class = 'interactive',
                               user = UNKNOWN, tag = 0, seq = sequenceText(0), enqueued = wholeNumber(now) })
  request.owner = UNKNOWN
  addRequest(request)
  redis.call('ZADD', P .. 'lapsed', '+inf', UNKNOWN)
  return request
end

-- A device is not trusted: what is no name of ours is passed over.
local function adopt(name)
  local turn, id = string.match(name, '^(%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?)%.([%w_-]+)$')
  if not id then return 0 end
  local request = readRequest(id) or unknown(id, tonumber(turn))
  if request.owner ~= UNKNOWN or redis.call('ZSCORE', P .. 'on:' .. device, id) then return 0 end
  table.insert(request.devices, device)
  request.rest = nil
  noteChange(request)
  takePlace(request, device, now + OPEN_MS)
  redis.call('ZADD', P .. 'sus:' .. device, now, id)
  redis.call('ZADD', P .. 'susd', 'NX', 0, device)
  return 1
end

local adopted = 0
for i = 6, #ARGV do adopted = adopted + adopt(ARGV[i]) end
writeBack()
return adopted
