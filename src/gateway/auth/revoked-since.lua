-- The tokens revoked since the caller's last poll, or all of them if Redis has a smaller number than the caller:
-- it has lost data.
-- KEYS: the revoked tokens by the number of their revocation; the last such number; the same tokens by their
-- expiry
-- ARGV: that number at the last poll
-- Returns the current number, the count of all that have not expired, then "id expiryMs" of each.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local since = tonumber(ARGV[1])
if last < since then since = 0 end
local revoked = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. since, '+inf')
table.insert(revoked, 1, tostring(last))
table.insert(revoked, 2, tostring(redis.call('ZCOUNT', KEYS[3], '(' .. nowMs, '+inf')))
return revoked
