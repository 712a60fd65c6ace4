-- Giving places and waits back, and granting to who waits: shared by the scripts that do such, after
-- lease-rules.lua.

local function freePlace(request, device)
  if redis.call('ZREM', P .. 'on:' .. device, request.id) == 0 then return end
  addUse('u:', device, -1)
  if request.class == 'bulk' then addUse('b:', device, -1) end
  if request.state ~= 's' then return end
  redis.call('ZREM', P .. 'sus:' .. device, request.id)
  if redis.call('EXISTS', P .. 'sus:' .. device) == 0 then redis.call('ZREM', P .. 'susd', device) end
end

-- Without waiters there is no order to keep, and nothing about flows to remember.
local function tidyFlows(device)
  if redis.call('EXISTS', queueKey('interactive', device), queueKey('bulk', device)) > 0 then return end
  redis.call('DEL', P .. 'f:' .. device)
  redis.call('SREM', P .. 'dirty', device)
end

local function leaveQueues(request)
  for _, device in ipairs(request.devices) do
    redis.call('ZREM', queueKey(request.class, device), request.member)
    tidyFlows(device)
  end
end

-- Removes a request in any state. The caller pumps the request's devices afterwards.
local function forget(request)
  if request.state == 'w' then leaveQueues(request)
  else for _, device in ipairs(request.devices) do freePlace(request, device) end end
  redis.call('DEL', P .. 'r:' .. request.id)
  redis.call('ZREM', P .. 'own:' .. request.owner, request.id)
  redis.call('SREM', P .. 'out:' .. request.owner, request.turn .. ' ' .. request.id)
  if request.state == 's' and redis.call('EXISTS', P .. 'own:' .. request.owner) == 0 then
    redis.call('ZREM', P .. 'lapsed', request.owner)
  end
end

local function grantWaiter(request)
  leaveQueues(request)
  for _, device in ipairs(request.devices) do takePlace(request, device, now + OPEN_MS) end
  moveTime(request)
  redis.call('HSET', P .. 'r:' .. request.id, 'state', 'g', 'grant', now)
  local message = request.turn .. ' ' .. request.id
  redis.call('SADD', P .. 'out:' .. request.owner, message)
  redis.call('RPUSH', P .. 'in:' .. request.owner, message)
end

local function tryWaiter(member)
  local request = readRequest(string.sub(member, 14))
  -- A wide one may have been granted by way of another of its devices already.
  if request.state ~= 'w' then return end
  if not fitsAll(request, readPlaces(request.devices)) then return end
  if recovering() then return markDirty(request.devices) end
  if redis.call('ZSCORE', P .. 'hb', request.owner) then return grantWaiter(request) end
  -- Its owner is gone, and nobody would take the grant. Those behind it get their turn from tidy.lua.
  forget(request)
  markDirty(request.devices)
end

-- Starts whoever may start now that something changed on `devices`. A grant leaves what later waiters
-- count as it was (one more in use, one reservation less), so one look at the first ones of each
-- queue, as many as places are free, is enough.
local function pump(devices)
  for _, place in ipairs(readPlaces(devices)) do
    local free = place.limit - place.used
    local freeForBulk = math.min(free, place.bulkLimit - place.bulk)
    local waiters = {}
    if free > 0 then waiters = redis.call('ZRANGE', queueKey('interactive', place.device), 0, free - 1) end
    if freeForBulk > 0 then
      for _, member in ipairs(redis.call('ZRANGE', queueKey('bulk', place.device), 0, freeForBulk - 1)) do
        waiters[#waiters + 1] = member
      end
    end
    for _, member in ipairs(waiters) do tryWaiter(member) end
  end
end
