--[[
Keeps the state of a receipt, and of a user's receipts the newest ones only: whoever asks for
downloads without end, refused or not, must not fill the Redis that the leases are in.

  KEYS[1]  the receipt
  KEYS[2]  ids of the user's receipts, by the time when they came
  ARGV     id, receipt (JSON), seconds to keep it, receipts of a user at most, what KEYS begin with
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
