-- Taking places and waiting, giving both back, and granting to who waits: shared by the scripts that do
-- such, after lease-order.lua.

local function takePlace(request, device, begunBy)
  addUse(readPlace(device), request, 1)
  redis.call('ZADD', P .. 'on:' .. device, begunBy, request.id)
end

local function freePlace(request, device)
  if redis.call('ZREM', P .. 'on:' .. device, request.id) == 0 then return end
  addUse(readPlace(device), request, -1)
  if request.state ~= 's' then return end
  redis.call('ZREM', P .. 'sus:' .. device, request.id)
  if redis.call('EXISTS', P .. 'sus:' .. device) == 0 then redis.call('ZREM', P .. 'susd', device) end
end

local function isIdle(place)
  if place.idle == nil then place.idle = redis.call('EXISTS', place.flows) == 0 end
  return place.idle
end

local function joinQueues(request, places)
  local tag, flow = request.tagText, request.flow or flowOf(request.class, request.user)
  for i = 1, #places do
    local place = places[i]
    redis.call('ZADD', queueKey(request.class, place.device), tag, request.member)
    if isIdle(place) then redis.call('ZADD', place.flows, floor, '', tag, flow)
    else redis.call('ZADD', place.flows, 'GT', tag, flow) end
    place.idle = false
  end
end

-- Without waiters there is no order to keep, and nothing about flows to remember.
local function leaveQueues(request)
  for _, place in ipairs(readPlaces(request.devices)) do
    local device = place.device
    redis.call('ZREM', queueKey(request.class, device), request.member)
    place.idle = redis.call('EXISTS', queueKey('interactive', device), queueKey('bulk', device)) == 0
    if place.idle then
      redis.call('DEL', place.flows)
      redis.call('SREM', P .. 'dirty', device)
    end
  end
end

-- The served tag moves the devices' virtual time on; flows that are not ahead of it are as new ones.
local function moveTime(request)
  topTag = math.max(topTag, request.tag)
  for _, place in ipairs(readPlaces(request.devices)) do
    local key = place.flows
    if not place.idle and redis.call('ZADD', key, 'XX', 'GT', 'CH', request.tagText, '') > 0 then
      redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. request.tagText)
    end
  end
end

local function markDirty(devices)
  for _, place in ipairs(readPlaces(devices)) do
    if not isIdle(place) then redis.call('SADD', P .. 'dirty', place.device) end
  end
end

-- Removes a request in any state. The caller pumps the request's devices afterwards.
local function forget(request)
  if request.state == 'w' then leaveQueues(request)
  else for _, device in ipairs(request.devices) do freePlace(request, device) end end
  dropRequest(request)
end

-- Makes a request that is in no queue a granted one.
local function grant(request)
  for _, device in ipairs(request.devices) do takePlace(request, device, now + OPEN_MS) end
  moveTime(request)
  request.state, request.granted = 'g', now
end

local function grantWaiter(request)
  leaveQueues(request)
  grant(request)
  noteChange(request)
  wakeOwner(request)
end

local function tryWaiter(id)
  local request = readRequest(id)
  -- A wide one may have been granted by way of another of its devices already.
  if request.state ~= 'w' then return end
  if not fitsAll(request, readPlaces(request.devices)) then return end
  if recovering() then return markDirty(request.devices) end
  if isAlive(request.owner) then return grantWaiter(request) end
  -- Its owner is gone, and nobody would take the grant. Those behind it get their turn from tidy.lua.
  forget(request)
  markDirty(request.devices)
end

local function firstWaiters(class, device, count)
  local ids = {}
  if count <= 0 then return ids end
  for i, member in ipairs(redis.call('ZRANGE', queueKey(class, device), 0, count - 1)) do
    ids[i] = string.sub(member, 14)
  end
  return ids
end

-- Starts whoever may start now that something changed on `devices`. A grant leaves what later waiters
-- count as it was (one more in use, one reservation less), so one look at the first ones of each
-- queue, as many as places are free, is enough.
local function pump(devices)
  for _, place in ipairs(readPlaces(devices)) do
    local free = place.idle and 0 or place.limit - place.used
    local waiters = firstWaiters('interactive', place.device, free)
    for _, id in ipairs(firstWaiters('bulk', place.device, math.min(free, place.bulkLimit - place.bulk))) do
      waiters[#waiters + 1] = id
    end
    readRequests(waiters)
    for _, id in ipairs(waiters) do tryWaiter(id) end
  end
end
