-- Acquiring and releasing streams and queue places, and granting to waiters: shared by the scripts that do so; follows
-- lease-order.lua.

local function takeStream(request, device, begunBy)
  addUse(readUse(device), request, 1)
  redis.call('ZADD', P .. 'on:' .. device, begunBy, request.id)
end

local function freeStream(request, device)
  if redis.call('ZREM', P .. 'on:' .. device, request.id) == 0 then return end
  addUse(readUse(device), request, -1)
  if request.state ~= 's' then return end
  redis.call('ZREM', P .. 'sus:' .. device, request.id)
  if redis.call('EXISTS', P .. 'sus:' .. device) == 0 then redis.call('ZREM', P .. 'susd', device) end
end

local function isIdle(use)
  if use.idle == nil then use.idle = redis.call('EXISTS', use.flows) == 0 end
  return use.idle
end

local function joinQueues(request, uses)
  local tag, flow = request.tagText, request.flow or flowOf(request.class, request.user)
  for i = 1, #uses do
    local use = uses[i]
    redis.call('ZADD', queueKey(request.class, use.device), tag, request.member)
    if isIdle(use) then redis.call('ZADD', use.flows, floor, '', tag, flow)
    else redis.call('ZADD', use.flows, 'GT', tag, flow) end
    use.idle = false
  end
end

-- Without waiters there is no order to keep, and no flow state to remember.
local function leaveQueues(request)
  for _, use in ipairs(readUses(request.devices)) do
    local device = use.device
    redis.call('ZREM', queueKey(request.class, device), request.member)
    use.idle = redis.call('EXISTS', queueKey('interactive', device), queueKey('bulk', device)) == 0
    if use.idle then
      redis.call('DEL', use.flows)
      redis.call('SREM', P .. 'dirty', device)
    end
  end
end

-- The granted tag advances the devices' virtual time; flows that are not ahead of it are equivalent to new ones.
local function moveTime(request)
  topTag = math.max(topTag, request.tag)
  for _, use in ipairs(readUses(request.devices)) do
    local key = use.flows
    if not use.idle and redis.call('ZADD', key, 'XX', 'GT', 'CH', request.tagText, '') > 0 then
      redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. request.tagText)
    end
  end
end

local function markDirty(devices)
  for _, use in ipairs(readUses(devices)) do
    if not isIdle(use) then redis.call('SADD', P .. 'dirty', use.device) end
  end
end

-- Removes a request in any state. The caller must pump the request's devices afterwards.
local function forget(request)
  if request.state == 'w' then leaveQueues(request)
  else for _, device in ipairs(request.devices) do freeStream(request, device) end end
  dropRequest(request)
end

-- Grants a request that is in no queue.
local function grant(request)
  for _, device in ipairs(request.devices) do takeStream(request, device, now + OPEN_MS) end
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
  -- A request for several devices may already have been granted through another of them.
  if request.state ~= 'w' then return end
  if not fitsAll(request, readUses(request.devices)) then return end
  if recovering() then return markDirty(request.devices) end
  if isAlive(request.owner) then return grantWaiter(request) end
  -- Its owner is gone, so no replica would accept the grant. Waiters after it get their turn from tidy.lua.
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

-- Grants every request that may start after a change on `devices`. A grant leaves the sums of later waiters unchanged
-- (one more in use, one reservation less), so checking the first waiters of each queue once, as many as there are free
-- streams, is enough.
local function pump(devices)
  for _, use in ipairs(readUses(devices)) do
    local free = use.idle and 0 or use.limit - use.used
    local waiters = firstWaiters('interactive', use.device, free)
    for _, id in ipairs(firstWaiters('bulk', use.device, math.min(free, use.bulkLimit - use.bulk))) do
      waiters[#waiters + 1] = id
    end
    readRequests(waiters)
    for _, id in ipairs(waiters) do tryWaiter(id) end
  end
end
