--[[
Renews the lease of the calling replica and takes its acknowledgements.

  ARGV[5]  length of the lease, ms
  ARGV[6]  how many grants ("turn id") follow that the replica has received
  ARGV[7]  and on: those grants, then ids of requests whose streams have all begun

Returns {state, recover, grants}: state "ok", or "lapsed" when the replica had no lease and must
send reassert; until when nothing is granted (when that changed, it must send reassert as well);
grants that it has not acknowledged.
]]
enter()
recovering()
redis.call('HSET', KEYS[1], 'now', now)
local received = tonumber(ARGV[6])
for i = 7, 6 + received do redis.call('SREM', P .. 'out:' .. REPLICA, ARGV[i]) end
for i = 7 + received, #ARGV do
  local request = readRequest(ARGV[i])
  if request and request.state == 'g' then
    for _, device in ipairs(request.devices) do
      redis.call('ZADD', P .. 'on:' .. device, 'XX', 'LT', now, request.id)
    end
  end
end
local known = redis.call('ZSCORE', P .. 'hb', REPLICA)
redis.call('ZADD', P .. 'hb', now + ARGV[5], REPLICA)
redis.call('ZREM', P .. 'lapsed', REPLICA)
return { known and 'ok' or 'lapsed', tostring(recoverUntil), redis.call('SMEMBERS', P .. 'out:' .. REPLICA) }
