--[[
Number of streams in use and of waiting requests per device. Read-only.

  ARGV[5]...  devices

Returns a list: streams in use, waiting requests and the lowered limit (-1: not lowered) of the first device, then of the
second, and so on.
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
