--[[
How many streams of devices are in use, and how many requests wait there. Changes nothing.

  ARGV[5]  and on: devices

Returns a list: streams in use and requests that wait of the first device, then of the second, and so on.
]]
local counts = {}
for i, use in ipairs(redis.call('HMGET', P .. 'use', unpack(ARGV, 5))) do
  local device = ARGV[4 + i]
  counts[#counts + 1] = use and tonumber(string.match(use, '^%d+')) or 0
  counts[#counts + 1] = redis.call('ZCARD', P .. 'q:' .. device) + redis.call('ZCARD', P .. 'qb:' .. device)
end
return counts
