--[[
Makes Redis agree with what the calling replica really has, after a lapse, a reconnect or a Redis
that lost its data: grants that it still streams count again, requests that it does not know any
more are given back.

  ARGV[3]  JSON: [[id, "device,device", class, user, "held" | "waiting"], ...]: all it has

Returns the ids of waiting requests that Redis does not know: they have lost their place.
]]
local now = nowMs()
local mine = {}
local lost = {}
for _, entry in ipairs(cjson.decode(ARGV[3])) do
  local id, devices, class, user, kind = unpack(entry)
  mine[id] = true
  local request = readRequest(id)
  if not request and kind == 'waiting' then
    lost[#lost + 1] = id
  elseif not request then
    putRequest(id, devices, class, user, 'g', now)
    redis.call('HSET', P .. 'r:' .. id, 'grant', now)
    use(readRequest(id), 1)
  elseif request.state == 's' then
    redis.call('HSET', P .. 'r:' .. id, 'state', 'g')
    for _, device in ipairs(request.devices) do redis.call('SREM', P .. 'sus:' .. device, id) end
  end
end
for _, id in ipairs(redis.call('SMEMBERS', P .. 'own:' .. REPLICA)) do
  if not mine[id] then
    local request = readRequest(id)
    if request then
      forget(request)
      pump(request.devices, now)
    else
      redis.call('SREM', P .. 'own:' .. REPLICA, id)
    end
  end
end
redis.call('ZREM', P .. 'lapsed', REPLICA)
return lost
