-- The tokens that were revoked since somebody looked last, or all of them where Redis knows less than they do: it has
-- lost what it had.
-- KEYS: the revoked tokens by the number of their revocation; the last such number; the same tokens by their expiry
-- ARGV: that number at the last look
-- Answers the number now, how many there are in all that have not expired by themselves, then "id expiryMs" of each.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local since = tonumber(ARGV[1])
if last < since then since = 0 end
local revoked = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. since, '+inf')
table.insert(revoked, 1, tostring(last))
table.insert(revoked, 2, tostring(redis.call('ZCOUNT', KEYS[3], '(' .. nowMs, '+inf')))
return revoked
