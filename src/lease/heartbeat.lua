--[[
Renews the lease of the calling replica, takes note of replicas whose lease ran out, and frees
suspects whose time has come.

A lapsed replica's waiters are dropped. Its grants become suspects: the device may still be
sending, so they count as in use. They are freed after ARGV[4] ms, by when the replica has cut its
own streams (mode "timed"); the full scheduler frees them by the device's own count of readers.

  ARGV[3]  length of the lease, ms
  ARGV[4]  how long suspects stay in use, ms
  ARGV[5]  and on: ids whose grant the replica has received

Returns {state, ids}: state "ok", or "lapsed" when the replica had no lease and must send reassert;
ids granted to the replica that it has not acknowledged.
]]
local now = nowMs()

local function lapse(replica)
  redis.call('ZREM', P .. 'hb', replica)
  redis.call('DEL', P .. 'in:' .. replica, P .. 'out:' .. replica)
  local touched = {}
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'own:' .. replica)) do
    local request = readRequest(id)
    if request and request.state == 'w' then
      forget(request)
      for _, device in ipairs(request.devices) do touched[#touched + 1] = device end
    elseif request then
      redis.call('HSET', P .. 'r:' .. id, 'state', 's')
      for _, device in ipairs(request.devices) do redis.call('SADD', P .. 'sus:' .. device, id) end
    end
  end
  redis.call('ZADD', P .. 'lapsed', now + ARGV[4], replica)
  pump(touched, now)
end

for i = 5, #ARGV do redis.call('SREM', P .. 'out:' .. REPLICA, ARGV[i]) end
local state = 'ok'
if not redis.call('ZSCORE', P .. 'hb', REPLICA) then state = 'lapsed' end
redis.call('ZADD', P .. 'hb', now + ARGV[3], REPLICA)
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', P .. 'hb', '-inf', now)) do lapse(replica) end
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', P .. 'lapsed', '-inf', now)) do
  if replica ~= REPLICA then
    forgetAll(replica, now)
    redis.call('ZREM', P .. 'lapsed', replica)
  end
end
return { state, redis.call('SMEMBERS', P .. 'out:' .. REPLICA) }
