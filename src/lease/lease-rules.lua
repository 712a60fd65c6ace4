--[[
The rules of the scheduler, shared by all its scripts: lease-scripts.ts puts this text in front of
each of them. Every script gets

  KEYS[1]  "{prefix}:g". All other keys share its hash tag and are made from it here, so that one
           Redis Cluster shard holds them all.
  ARGV[1]  the replica that calls
  ARGV[2]  streams that one device may serve at once
  ARGV[3]  and on: the script's own

Every script may run twice (the client sends it again after a reconnect) and then changes nothing more.

Keys:
  :g             HASH   seq (last sequence number), now (largest clock seen, ms)
  :u, :ub        HASH   device -> streams in use (grants and suspects), of which bulk
  :cap           HASH   device -> lowered limit; a device without an entry has ARGV[2]
  :q:<device>    ZSET   who waits: score = tag, member = 12-digit sequence number ":" id
  :r:<id>        HASH   one request: devs class user owner tag seq state(w|g|s) enq grant
  :own:<replica> SET    ids of the replica
  :in:<replica>  LIST   ids granted while they waited; wakes the replica, which reads it by BLMPOP
  :out:<replica> SET    ids granted and not yet acknowledged; read again at each heartbeat, so that
                        a wake-up lost with a connection is only late
  :hb            ZSET   replica -> end of its lease, ms
  :lapsed        ZSET   replica that lost its lease -> when its suspects are freed, ms
  :sus:<device>  SET    suspects: grants whose owner lost its lease; they still count as in use
]]
local P = string.sub(KEYS[1], 1, -2)
local REPLICA = ARGV[1]
local SLOTS = tonumber(ARGV[2])
-- One stream of a device is never given to bulk work: somebody at a screen may want it.
local KEPT_FROM_BULK = 1

-- Redis's own clock in ms; never goes back, also when an administrator sets the clock back.
local function nowMs()
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local seen = tonumber(redis.call('HGET', KEYS[1], 'now') or '0')
  if now <= seen then return seen end
  redis.call('HSET', KEYS[1], 'now', now)
  return now
end

local function split(names)
  local list = {}
  for name in string.gmatch(names, '[^,]+') do list[#list + 1] = name end
  return list
end

local function readRequest(id)
  local f = redis.call('HMGET', P .. 'r:' .. id, 'devs', 'class', 'owner', 'seq', 'state')
  if not f[1] then return nil end
  return { id = id, devices = split(f[1]), class = f[2], owner = f[3], state = f[5],
           member = string.format('%012d', f[4]) .. ':' .. id }
end

local function count(key, device) return tonumber(redis.call('HGET', P .. key, device) or '0') end

local function add(key, device, delta)
  if redis.call('HINCRBY', P .. key, device, delta) <= 0 then redis.call('HDEL', P .. key, device) end
end

local function limit(device)
  return math.min(SLOTS, tonumber(redis.call('HGET', P .. 'cap', device) or SLOTS))
end

-- How many wait before the request, on the device where most do.
local function rank(request)
  local worst = 0
  for _, device in ipairs(request.devices) do
    worst = math.max(worst, redis.call('ZRANK', P .. 'q:' .. device, request.member) or 0)
  end
  return worst
end

-- Every earlier waiter reserves a place on each of its devices without holding it: nobody can be
-- starved by narrower requests, and nobody holds anything while waiting.
local function mayStart(request)
  for _, device in ipairs(request.devices) do
    local before = redis.call('ZRANK', P .. 'q:' .. device, request.member) or 0
    if count('u', device) + before >= limit(device) then return false end
    if request.class == 'bulk' and count('ub', device) >= limit(device) - KEPT_FROM_BULK then return false end
  end
  return true
end

local function use(request, delta)
  for _, device in ipairs(request.devices) do
    add('u', device, delta)
    if request.class == 'bulk' then add('ub', device, delta) end
  end
end

local function leaveQueues(request)
  for _, device in ipairs(request.devices) do redis.call('ZREM', P .. 'q:' .. device, request.member) end
end

local function grant(request, now)
  leaveQueues(request)
  use(request, 1)
  redis.call('HSET', P .. 'r:' .. request.id, 'state', 'g', 'grant', now)
  redis.call('SADD', P .. 'out:' .. request.owner, request.id)
end

-- Starts whoever may start now that a place on `devices` is free. Granting leaves use + rank of
-- all later waiters as it was, so looking at the first (limit - use) waiters of a device is enough.
local function pump(devices, now)
  for _, device in ipairs(devices) do
    local free = limit(device) - count('u', device)
    if free > 0 then
      for _, member in ipairs(redis.call('ZRANGE', P .. 'q:' .. device, 0, free - 1)) do
        local request = readRequest(string.sub(member, 14))
        if request and mayStart(request) then
          grant(request, now)
          redis.call('RPUSH', P .. 'in:' .. request.owner, request.id)
        end
      end
    end
  end
end

-- Removes a request in any state. The caller pumps the request's devices afterwards.
local function forget(request)
  if request.state == 'w' then leaveQueues(request) else use(request, -1) end
  if request.state == 's' then
    for _, device in ipairs(request.devices) do redis.call('SREM', P .. 'sus:' .. device, request.id) end
  end
  redis.call('DEL', P .. 'r:' .. request.id)
  redis.call('SREM', P .. 'own:' .. request.owner, request.id)
  redis.call('SREM', P .. 'out:' .. request.owner, request.id)
end

-- Gives everything of a replica back, and starts whoever may start then.
local function forgetAll(replica, now)
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'own:' .. replica)) do
    local request = readRequest(id)
    if request then
      forget(request)
      pump(request.devices, now)
    end
  end
end

local function putRequest(id, devices, class, user, state, now)
  local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
  -- First come, first served: the tag that orders the queue is the sequence number itself.
  redis.call('HSET', P .. 'r:' .. id, 'devs', devices, 'class', class, 'user', user, 'owner', REPLICA,
             'tag', seq, 'seq', seq, 'state', state, 'enq', now)
  redis.call('SADD', P .. 'own:' .. REPLICA, id)
  return seq
end
