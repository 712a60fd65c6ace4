--[[
One bounded step of the housekeeping that any replica does on behalf of all: records leases that
expired, drops the waiters of lapsed replicas and makes their grants suspects (the device may still be
sending, so they count as in use), ends temporary lowering of limits, starts requests on devices marked
dirty, and returns devices whose suspects need to be checked.

  ARGV[5]  minimum interval between two returns of the same device with suspects, ms

Returns {more, now, devices}: more = 1 if another step is due at once. The caller must ask the devices
for their readers, and pass the answers to clear.lua with this `now`.
]]
local REQUESTS, DEVICES, FLOOR_MS = 200, 32, 30000

local function suspect(request)
  request.state = 's'
  noteChange(request)
  for _, device in ipairs(request.devices) do
    redis.call('ZADD', P .. 'sus:' .. device, now, request.id)
    redis.call('ZADD', P .. 'susd', 'NX', 0, device)
  end
end

local function workOff(replica, from)
  local rows = redis.call('ZRANGEBYSCORE', P .. 'own:' .. replica, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, REQUESTS)
  local ids = {}
  for i = 1, #rows, 2 do ids[#ids + 1] = rows[i] end
  readRequests(ids)
  for i = 1, #rows, 2 do
    local request = readRequest(rows[i])
    if not request then
      redis.call('ZREM', P .. 'own:' .. replica, rows[i])
    elseif request.state == 'w' then
      forget(request)
      markDirty(request.devices)
    elseif request.state == 'g' then
      suspect(request)
    end
  end
  writeBack()
  local done = #rows < 2 * REQUESTS
  if redis.call('EXISTS', P .. 'own:' .. replica) == 0 then redis.call('ZREM', P .. 'lapsed', replica)
  else redis.call('ZADD', P .. 'lapsed', done and '+inf' or rows[#rows], replica) end
end

enter()
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', P .. 'hb', '-inf', now)) do
  redis.call('ZREM', P .. 'hb', replica)
  redis.call('DEL', P .. 'in:' .. replica, P .. 'out:' .. replica)
  redis.call('ZADD', P .. 'lapsed', 0, replica)
end
local lapsed = redis.call('ZRANGEBYSCORE', P .. 'lapsed', '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if lapsed[1] then workOff(lapsed[1], lapsed[2]) end

for _, device in ipairs(redis.call('ZRANGEBYSCORE', P .. 'restore', '-inf', now, 'LIMIT', 0, DEVICES)) do
  restoreLimit(readUse(device))
  redis.call('ZREM', P .. 'restore', device)
  markDirty({ device })
end
if not recovering() then
  local dirty = redis.call('SPOP', P .. 'dirty', DEVICES)
  if #dirty > 0 then pump(dirty) end
end
writeBack()

local looked = redis.call('HMGET', KEYS[1], 'looked', 'before')
if now - tonumber(looked[1] or '0') > FLOOR_MS then
  redis.call('HSET', KEYS[1], 'looked', now, 'floor', looked[2] or '0', 'before', wholeNumber(topTag))
end

local probes = redis.call('ZRANGEBYSCORE', P .. 'susd', '-inf', now - ARGV[5], 'LIMIT', 0, DEVICES)
for _, device in ipairs(probes) do redis.call('ZADD', P .. 'susd', now, device) end
local more = redis.call('ZCOUNT', P .. 'lapsed', '-inf', '(+inf') > 0
  or (not recovering() and redis.call('EXISTS', P .. 'dirty') == 1)
return { more and 1 or 0, tostring(now), probes }
