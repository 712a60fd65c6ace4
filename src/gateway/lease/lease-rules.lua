--[[
The rules of the scheduler, shared by all its scripts: lease-scripts.ts puts this text in front of
each of them, then lease-records.lua and lease-order.lua, and lease-changes.lua where that is needed.
Every script gets

  KEYS[1]  "{prefix}:g". All other keys share its hash tag and are made from it here, so that one
           Redis Cluster shard holds them all.
  ARGV[1]  the replica that calls
  ARGV[2]  streams that one device may serve at once
  ARGV[3]  how long nothing is granted after Redis was restarted or lost its data, ms
  ARGV[4]  within so many ms after its grant a stream has begun or its lease was given back
  ARGV[5]  and on: the script's own

Every script may run twice (the client sends it again after a reconnect) and then changes nothing more.

Keys:
  :g             HASH   run (the server's run_id), recover (no grant before, ms), now (largest clock
                        seen, ms), skew (added to the server's clock), seq (last sequence number),
                        v (largest tag granted), before and floor (v when tidy.lua looked last,
                        and half a minute before), looked (when, ms)
  :use           HASH   device -> "used bulk" or "used bulk limit": streams in use (grants and
                        suspects), of which bulk, and its limit while that is lowered
  :restore       ZSET   device with a lowered limit -> when it ends, ms
  :on:<device>   ZSET   id that is in use there -> from when on its stream has begun for certain, ms
  :q:<device>    ZSET   who waits, interactive: score = tag, member = 12-digit sequence number ":" id
  :qb:<device>   ZSET   who waits, bulk
  :f:<device>    ZSET   only while somebody waits there: flow -> its last tag; "" -> largest tag granted
  :dirty         SET    devices where somebody may start, to be looked at by tidy.lua
  :r             HASH   id -> the request: "state attempt granted-ms owner devices class tag seq
                        enqueued-ms user". State: w (waits), g (granted), s (suspect). Attempt: a number
                        that grows with everything its owner asks for, so that what is late or comes
                        twice is told from the present
  :own:<replica> ZSET   ids of the replica -> sequence number
  :in:<replica>  LIST   grants ("attempt id") of requests that waited; wakes the replica by BLMPOP
  :out:<replica> SET    grants not yet acknowledged; read again at each heartbeat, so that a
                        wake-up lost with a connection is only late
  :hb            ZSET   replica -> end of its lease, ms
  :lapsed        ZSET   replica that lost its lease -> sequence number up to which it was worked off
  :sus:<device>  ZSET   suspects, grants whose owner lost its lease -> since when, ms; still in use
  :susd          ZSET   device with suspects -> when its readers were last asked for, ms
  :hold          HASH   device -> how long its interactive streams take, moving average, ms
  :holdb         HASH   device -> how long its bulk streams take, moving average, ms

Order. Requests of the same class and user are a flow. tag = start + 840 * devices / weight, where
start is the largest of: the flow's last tag on a device, the largest tag granted on a device, and
the floor (the largest tag granted anywhere half a minute to a minute ago, so that nobody is
overtaken for ever where many newcomers come). Smaller tags go first; of equal ones interactive,
then the older. Bulk streams cost as many times more as they take longer than the device's interactive
ones, eight times at most: the weights share the time of the streams, not their number.

Who may start. A device serves `limit` streams, of which bulk may use `bulkLimit`. Every earlier waiter
reserves a stream on each of its devices without holding it; bulk waiters together never reserve more
than bulk could use now. An interactive request may start when on each of its devices
    used + interactive before + min(bulk before, bulkLimit - bulk in use) < limit
a bulk one when bulk in use + bulk before < bulkLimit as well (then the min is "bulk before").
Nobody starves: on a device of the first of all waiters, once used < limit (and for a bulk one bulk
in use < bulkLimit) holds it stays so, because every later request counts the first one's
reservation; and it comes to hold when a stream there ends. So the first waits no longer than the
longest stream that runs on one of its devices. Nobody holds anything while waiting: no deadlock.
]]
local P = string.sub(KEYS[1], 1, -2)
local REPLICA = ARGV[1]
local STREAMS = tonumber(ARGV[2])
local RECOVER_MS = tonumber(ARGV[3])
local OPEN_MS = tonumber(ARGV[4])
-- The least common multiple of all weights and more, so that tags stay whole numbers.
local COST = 840
local WEIGHTS = { interactive = 8, bulk = 1 }

local now, recoverUntil, floor, topTag, writtenTop, knownRun, askedRun

-- Reads the clock: Redis's own in ms; it never goes back, also when an administrator sets it back.
local function enter()
  local g = redis.call('HMGET', KEYS[1], 'run', 'recover', 'now', 'skew', 'floor', 'v')
  local time = redis.call('TIME')
  local seen, skew = tonumber(g[3] or '0'), tonumber(g[4] or '0')
  now = time[1] * 1000 + math.floor(time[2] / 1000) + skew
  if now < seen then
    redis.call('HSET', KEYS[1], 'skew', skew + seen - now)
    now = seen
  end
  knownRun, recoverUntil, floor, topTag = g[1], tonumber(g[2] or '0'), tonumber(g[5] or '0'), tonumber(g[6] or '0')
  writtenTop = topTag
end

-- Whether nothing may be granted now. Sees whether this server is the one that the state was written
-- by; every script asks before it grants, and only then, because the question costs as much as ten others.
local function recovering()
  if not askedRun then
    askedRun = true
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
    if knownRun ~= run then
      recoverUntil = now + RECOVER_MS
      redis.call('HSET', KEYS[1], 'run', run, 'recover', recoverUntil)
    end
  end
  return now < recoverUntil
end

-- Whether a replica has its lease. Whoever has none is never reaped, and what it got would stay for ever.
local alive = {}
local function isAlive(replica)
  if alive[replica] == nil then alive[replica] = redis.call('ZSCORE', P .. 'hb', replica) end
  return alive[replica]
end

-- Lua would write large ones with an exponent. Numbers that go to Redis as they are take it long.
local function wholeNumber(number) return string.format('%d', number) end

local function queueKey(class, device) return P .. (class == 'bulk' and 'qb:' or 'q:') .. device end

local function flowOf(class, user) return class .. ':' .. user end

-- Sequence numbers as the queues have them, where of equal tags the smaller text goes first.
local function sequenceText(seq) return string.format('%012d', seq) end
