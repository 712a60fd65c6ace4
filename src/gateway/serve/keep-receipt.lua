--[[
Stores the state of a receipt, and keeps only the newest receipts of a user: requesting downloads
endlessly, rejected or not, must not fill the Redis that holds the leases.

  KEYS[1]  the receipt
  KEYS[2]  ids of the user's receipts, by time
  ARGV     id, receipt (JSON), seconds to keep it, maximum number of receipts of a user, prefix of KEYS
]]
local id, receipt, keptS, most, prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]

redis.call('SET', KEYS[1], receipt, 'EX', keptS)
if redis.call('ZADD', KEYS[2], 'NX', nowUs, id) == 1 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', nowUs - keptS * 1000000)
  local over = redis.call('ZCARD', KEYS[2]) - most
  if over > 0 then
    local oldest = redis.call('ZPOPMIN', KEYS[2], over)
    for i = 1, #oldest, 2 do redis.call('DEL', prefix .. oldest[i]) end
  end
end
redis.call('EXPIRE', KEYS[2], keptS)
