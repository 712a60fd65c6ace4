--[[
Takes the calling replica out of the scheduler at its end: everything it has is given back.
]]
local now = nowMs()
for _, id in ipairs(redis.call('SMEMBERS', P .. 'own:' .. REPLICA)) do
  local request = readRequest(id)
  if request then
    forget(request)
    pump(request.devices, now)
  end
end
redis.call('DEL', P .. 'own:' .. REPLICA, P .. 'in:' .. REPLICA, P .. 'out:' .. REPLICA)
redis.call('ZREM', P .. 'hb', REPLICA)
redis.call('ZREM', P .. 'lapsed', REPLICA)
return redis.status_reply('OK')
