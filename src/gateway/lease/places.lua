--[[
What is known about some requests. Read-only.

  ARGV[5]...  ids

Returns a list, without unknown ids, of {id, state, devices, class, user, owner, enqueued ms,
granted ms or "", position in the queue (waiters), ms until its turn or ""}. The estimate is the number of
streams reserved before it, divided by the device's streams that will end, times their duration: the average,
or, if longer, how long all current ones have been running already. It is unknown for bulk requests, which
wait for bulk streams, and if only bulk streams are running or no stream has ended yet.
]]
-- How long the youngest interactive stream on the device has been running.
local function youngestMs(device)
  local ids, least = redis.call('ZRANGE', P .. 'on:' .. device, 0, -1), nil
  readRequests(ids)
  for _, id in ipairs(ids) do
    local running = readRequest(id)
    if running and running.class ~= 'bulk' then least = math.min(least or math.huge, now - running.granted) end
  end
  return least or 0
end

local function expected(request, uses)
  if request.class == 'bulk' then return '' end
  local known = redis.call('HMGET', P .. 'hold', unpack(request.devices))
  local worst = 0
  for i, use in ipairs(uses) do
    if not fits(request, use) then
      local ending = use.limit - use.bulk
      if not known[i] or ending < 1 then return '' end
      local tookMs = math.max(tonumber(known[i]), youngestMs(use.device))
      worst = math.max(worst, (reserved(request, use) + 1) / ending * tookMs)
    end
  end
  return wholeNumber(worst)
end

enter()
local rows = {}
readRequests({ unpack(ARGV, 5) })
for i = 5, #ARGV do
  local request = readRequest(ARGV[i])
  if request then
    local line, eta = 0, ''
    if request.state == 'w' then
      local uses = readUses(request.devices)
      line, eta = position(request, uses), expected(request, uses)
    end
    rows[#rows + 1] = { request.id, request.state, table.concat(request.devices, ','), request.class, request.user,
                        request.owner, request.enqueued, request.granted > 0 and tostring(request.granted) or '', line, eta }
  end
end
return rows
