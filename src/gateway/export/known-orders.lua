-- Common beginning of the scripts that store orders: looks up idempotency keys. Only the newest keys of each user, and
-- of all, are kept: users who order endlessly, or cancel what they order, must not fill the Redis that holds the
-- leases. For an order the scripts take three keys (its own, those of its user by time, those of all by time; "" = the
-- order has none) and four values: hash of what was asked, how long a key is kept in ms, maximum number of keys of a
-- user and of all.

-- The answer for an order whose key is known, else nil.
local function knownOrder(key, hash)
  local known = key ~= '' and redis.call('GET', key)
  if not known then return nil end
  local id, knownHash = known:match('^(%S+) (%S+)$')
  return { knownHash == hash and 'exists' or 'conflict', id }
end

local function knowOrder(id, keys, values)
  local key, ofUser, ofAll = unpack(keys)
  if key == '' then return end
  local hash, keptMs, userMost, allMost = unpack(values)
  local time = redis.call('TIME')
  local nowUs = time[1] * 1000000 + time[2]
  redis.call('SET', key, id .. ' ' .. hash, 'PX', keptMs)
  local function list(set, most)
    redis.call('ZREMRANGEBYSCORE', set, '-inf', nowUs - keptMs * 1000)
    redis.call('ZADD', set, nowUs, key)
    redis.call('PEXPIRE', set, keptMs)
    local over = redis.call('ZCARD', set) - tonumber(most)
    if over <= 0 then return end
    local oldest = redis.call('ZPOPMIN', set, over)
    for i = 1, #oldest, 2 do
      redis.call('DEL', oldest[i])
      redis.call('ZREM', ofAll, oldest[i])
    end
  end
  list(ofUser, userMost)
  list(ofAll, allMost)
end

