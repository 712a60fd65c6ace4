-- Which requests may start, by the rules of lease-rules.lua; shared by all scripts, follows lease-records.lua.

-- Counts the waiters before the request on a device: interactive ones, bulk ones. A request that is in no queue yet has
-- the largest sequence number of all, and usually the largest tag, so Redis sees at once that nothing comes after it.
local function before(request, device)
  local bulk = request.class == 'bulk'
  local key, own = queueKey(request.class, device), nil
  if request.state == 'w' then own = redis.call('ZRANK', key, request.member) or 0
  else own = redis.call('ZCARD', key) - redis.call('ZCOUNT', key, '(' .. request.tagText, '+inf') end
  if bulk then return redis.call('ZCOUNT', queueKey('interactive', device), '-inf', request.tagText), own end
  return own, redis.call('ZCOUNT', queueKey('bulk', device), '-inf', '(' .. request.tagText)
end

-- Number of streams that earlier waiters have reserved on a device, as far as the request is concerned.
local function reserved(request, use)
  local interactive, bulk = before(request, use.device)
  if request.class == 'bulk' then return interactive + bulk, bulk end
  return interactive + math.min(bulk, math.max(0, use.bulkLimit - use.bulk)), 0
end

local function fits(request, use)
  if use.used >= use.limit then return false end
  if request.class == 'bulk' and use.bulk >= use.bulkLimit then return false end
  if use.idle then return true end
  local all, bulk = reserved(request, use)
  if request.class == 'bulk' and use.bulk + bulk >= use.bulkLimit then return false end
  return use.used + all < use.limit
end

local function fitsAll(request, uses)
  for i = 1, #uses do
    if not fits(request, uses[i]) then return false end
  end
  return true
end

-- Position in the queue (n-th), on the device where most streams are reserved before it.
local function position(request, uses)
  local worst = 0
  for i = 1, #uses do
    local use = uses[i]
    if not use.idle then worst = math.max(worst, (reserved(request, use))) end
  end
  return worst + 1
end
