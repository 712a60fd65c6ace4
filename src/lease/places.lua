--[[
What is known of some requests. Reads only.

  ARGV[5]  and on: ids

Returns a list, without those that are unknown, of {id, state, devices, class, user, owner,
enqueued ms, granted ms or "", position in line (waiters), ms until its turn or ""}. The last is the
reserved streams before it, over the device's limit, times what streams take there on average.
]]
local function expected(request, uses)
  local known = redis.call('HMGET', P .. 'hold', unpack(request.devices))
  local worst
  for i, use in ipairs(uses) do
    if known[i] then
      local turns = ((reserved(request, use)) + 1) / math.max(1, use.limit)
      worst = math.max(worst or 0, turns * tonumber(known[i]))
    end
  end
  return worst and wholeNumber(worst) or ''
end

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
