--[[
Removes the calling replica from the scheduler when it shuts down: everything it has is released, a part
with each call.

Returns how much is left; the last call returns 0.
]]
local REQUESTS = 200
enter()
local ids = redis.call('ZRANGE', P .. 'own:' .. REPLICA, 0, REQUESTS - 1)
readRequests(ids)
for _, id in ipairs(ids) do
  local request = readRequest(id)
  if request then
    forget(request)
    pump(request.devices)
  else
    redis.call('ZREM', P .. 'own:' .. REPLICA, id)
  end
end
writeBack()
local left = redis.call('ZCARD', P .. 'own:' .. REPLICA)
if left > 0 then return left end
redis.call('DEL', P .. 'in:' .. REPLICA, P .. 'out:' .. REPLICA)
redis.call('ZREM', P .. 'hb', REPLICA)
redis.call('ZREM', P .. 'lapsed', REPLICA)
return 0
