-- What idempotency keys stand for, as the text that the scripts which keep orders begin with. Of each user, and of all, the
-- newest keys are known only: who orders without end, or cancels what they order, must not fill the Redis that the leases
-- are in.
-- Of an order they take three keys (its own, those of its user by the time when they came, those of all likewise) and four
-- values: hash of what was asked ("" = the order has no key), how long a key is known in ms, keys of a user and of all at most.

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

