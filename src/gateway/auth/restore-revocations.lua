-- Restores revocations that a gateway knows but Redis has lost, possibly along with the tokens.
-- KEYS: the revoked tokens by the number of their revocation; the same by their expiry; the last such number
-- ARGV: id, expiry in ms of each
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #ARGV, 2 do
  local revoked = ARGV[i] .. ' ' .. ARGV[i + 1]
  if tonumber(ARGV[i + 1]) > nowMs and not redis.call('ZSCORE', KEYS[2], revoked) then
    -- See revoke-token.lua.
    local number = string.format('%d', math.max(tonumber(redis.call('GET', KEYS[3]) or '0') + 1, nowMs))
    redis.call('SET', KEYS[3], number)
    redis.call('ZADD', KEYS[1], number, revoked)
    redis.call('ZADD', KEYS[2], ARGV[i + 1], revoked)
  end
end
return 1
