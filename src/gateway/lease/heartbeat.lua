--[[
Renews the lease of the calling replica and takes its acknowledgements.

  ARGV[5]  length of the lease, ms
  ARGV[6]  how many grants ("attempt id") follow that the replica has received
  ARGV[7]  how many ids follow them of requests whose streams have all begun
  ARGV[8]  and on: those grants, those ids, then ids of requests of which a stream is opened again

Returns {state, recover, grants}: state "ok", or "lapsed" when the replica had no lease and must
send reassert; until when nothing is granted (when that changed, it must send reassert as well);
grants that it has not acknowledged.
]]
enter()
recovering()
redis.call('HSET', KEYS[1], 'now', now)
local opened = 8 + ARGV[6]
local reopening = opened + ARGV[7]
for i = 8, opened - 1 do noteOut(REPLICA, ARGV[i], false) end
writeBack()
readRequests({ unpack(ARGV, opened) })
for i = opened, #ARGV do
  local request = readRequest(ARGV[i])
  if request and request.state == 'g' then
    for _, device in ipairs(request.devices) do
      if i < reopening then redis.call('ZADD', P .. 'on:' .. device, 'XX', 'LT', now, request.id)
      else redis.call('ZADD', P .. 'on:' .. device, 'XX', 'GT', now + OPEN_MS, request.id) end
    end
  end
end
local known = redis.call('ZSCORE', P .. 'hb', REPLICA)
redis.call('ZADD', P .. 'hb', now + ARGV[5], REPLICA)
redis.call('ZREM', P .. 'lapsed', REPLICA)
return { known and 'ok' or 'lapsed', tostring(recoverUntil), redis.call('SMEMBERS', P .. 'out:' .. REPLICA) }
