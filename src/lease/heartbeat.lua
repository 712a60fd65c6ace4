--[[
Renews the lease of the calling replica and takes its acknowledgements.

  ARGV[5]  length of the lease, ms
  ARGV[6]  and on: grants ("turn id") that the replica has received

Returns {state, recover, grants}: state "ok", or "lapsed" when the replica had no lease and must
send reassert; until when nothing is granted (when that changed, it must send reassert as well);
grants that it has not acknowledged.
]]
enter()
recovering()
redis.call('HSET', KEYS[1], 'now', now)
for i = 6, #ARGV do noteOut(REPLICA, ARGV[i], false) end
writeBack()
local known = redis.call('ZSCORE', P .. 'hb', REPLICA)
redis.call('ZADD', P .. 'hb', now + ARGV[5], REPLICA)
redis.call('ZREM', P .. 'lapsed', REPLICA)
return { known and 'ok' or 'lapsed', tostring(recoverUntil), redis.call('SMEMBERS', P .. 'out:' .. REPLICA) }
