--[[
Renews the lease of the calling replica and processes its acknowledgements.

  ARGV[5]     length of the lease, ms
  ARGV[6]     number of received grants ("attempt id") that follow
  ARGV[7]     number of ids that follow them, of requests whose streams have all begun
  ARGV[8]...  those grants, those ids, then ids of requests with a stream that is being reopened

Returns {state, recover, grants}: state "ok", or "lapsed" if the replica had no lease and must send
reassert; the time until which nothing is granted (if that changed, it must send reassert as well);
the grants that it has not acknowledged.
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
