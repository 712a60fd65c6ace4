-- What idempotency keys stand for: the text with which the scripts that store orders begin. Only the newest keys are
-- kept, per user and in total, so that a client that orders endlessly, or cancels what it orders, cannot fill the Redis
-- that holds the leases.
-- For an order they take three keys (its own; those of its user by arrival time; those of all users by arrival time)
-- and four values: hash of the request ("" = the order has no key), how long a key is kept in ms, the maximum number of
-- keys per user, and in total.

-- The answer for an order whose key is known, else nil.
local function knownOrder(key, hash)
  local known = hash ~= '' and redis.call('GET', key)
  if not known then return nil end
  local id, knownHash = known:match('^(%S+) (%S+)$')
  return { knownHash == hash and 'exists' or 'conflict', id }
end

local function knowOrder(id, keys, values)
  local key, ofUser, ofAll = unpack(keys)
  local hash, keptMs, userMost, allMost = unpack(values)
  if hash == '' then return end
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

