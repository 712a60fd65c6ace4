--[[
Who holds and who waits now, over all replicas, oldest first. Reads only.

  ARGV[3]  most requests to return

Returns a list of {id, state, devices, class, user, owner, enqueued ms, granted ms or "", rank}.
]]
local list = {}
local function collect(replica)
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'own:' .. replica)) do
    local f = redis.call('HMGET', P .. 'r:' .. id, 'state', 'devs', 'class', 'user', 'owner', 'enq', 'grant', 'seq')
    if f[1] then
      local place = 0
      if f[1] == 'w' then place = rank(readRequest(id)) + 1 end
      list[#list + 1] = { tonumber(f[8]), { id, f[1], f[2], f[3], f[4], f[5], f[6], f[7] or '', place } }
    end
  end
end
for _, key in ipairs({ 'hb', 'lapsed' }) do
  for _, replica in ipairs(redis.call('ZRANGE', P .. key, 0, -1)) do collect(replica) end
end
table.sort(list, function(a, b) return a[1] < b[1] end)
local shown = {}
for i = 1, math.min(#list, tonumber(ARGV[3])) do shown[i] = list[i][2] end
return shown
