--[[
How many streams of devices are in use, and how many requests wait there. Changes nothing.

  ARGV[5]  and on: devices

Returns a list: streams in use, requests that wait and the lowered limit (-1: it is not lowered) of the first device, then of
the second, and so on.
]]
local counts = {}
for i, use in ipairs(redis.call('HMGET', P .. 'use', unpack(ARGV, 5))) do
  local device = ARGV[4 + i]
  local used, limit = string.match(use or '', '^(%d+) %d+ ?(%d*)$')
  counts[#counts + 1] = tonumber(used) or 0
  counts[#counts + 1] = redis.call('ZCARD', P .. 'q:' .. device) + redis.call('ZCARD', P .. 'qb:' .. device)
  counts[#counts + 1] = tonumber(limit) or -1
end
return counts
