--[[
The rules of the scheduler, shared by all its scripts: lease-scripts.ts prepends this text to each of
them, then lease-records.lua and lease-order.lua, and lease-changes.lua if needed. Every script gets

  KEYS[1]  "{prefix}:g". All other keys share its hash tag and are derived from it here, so that
           one Redis Cluster shard holds them all.
  ARGV[1]  the calling replica
  ARGV[2]  number of streams that a device may serve concurrently
  ARGV[3]  how long nothing is granted after Redis was restarted or lost its data, ms
  ARGV[4]  within this many ms after a grant, its stream has begun or the lease was released
  ARGV[5]...  the script's own arguments

Every script may run twice (the client sends it again after a reconnect); the second run changes nothing.

Keys:
  :g             HASH   run (the server's run_id), recover (no grant before, ms), now (largest clock
                        seen, ms), skew (added to the server's clock), seq (last sequence number),
                        v (largest tag granted), before and floor (v when tidy.lua last checked,
                        and half a minute before that), looked (when it checked, ms)
  :use           HASH   device -> "used bulk" or "used bulk limit": streams in use (grants and
                        suspects), how many of them are bulk, and its limit while that is lowered
  :restore       ZSET   device with a lowered limit -> when it ends, ms
  :on:<device>   ZSET   id in use there -> time from which its stream has certainly begun, ms
  :q:<device>    ZSET   interactive waiters: score = tag, member = 12-digit sequence number ":" id
  :qb:<device>   ZSET   bulk waiters
  :f:<device>    ZSET   only while there are waiters: flow -> its last tag; "" -> largest tag granted
  :dirty         SET    devices where a request may start, to be checked by tidy.lua
  :r             HASH   id -> the request: "state attempt granted-ms owner devices class tag seq
                        enqueued-ms user". State: w (waits), g (granted), s (suspect). Attempt: a number
                        that increases with everything its owner requests, which distinguishes late
                        and duplicate messages from current ones
  :own:<replica> ZSET   ids of the replica -> sequence number
  :in:<replica>  LIST   grants ("attempt id") of requests that waited, and requests to cancel ("cancel id user");
                        wakes the replica through BLMPOP
  :out:<replica> SET    grants not yet acknowledged; read again at each heartbeat, so that a
                        wake-up lost with a connection is merely late
  :hb            ZSET   replica -> end of its lease, ms
  :lapsed        ZSET   replica that lost its lease -> sequence number up to which it was processed
  :sus:<device>  ZSET   suspects (grants whose owner lost its lease, still in use) -> since when, ms
  :susd          ZSET   device with suspects -> when its readers were last requested, ms
  :hold          HASH   device -> duration of its interactive streams, moving average, ms
  :holdb         HASH   device -> duration of its bulk streams, moving average, ms

Order. Requests of the same class and user are a flow. tag = start + 840 * devices / weight, where
start is the largest of: the flow's last tag on a device, the largest tag granted on a device, and
the floor (the largest tag granted anywhere half a minute to a minute ago, so that no
request is overtaken forever by many newcomers). Smaller tags go first; among equal ones interactive
requests, then older ones. Bulk streams cost more in proportion to how much longer they take than the
device's interactive ones, at most eight times as much: the weights divide stream time, not stream count.

Eligibility. A device serves `limit` streams, of which bulk requests may use `bulkLimit`. Every earlier waiter
reserves a stream on each of its devices without holding it; bulk waiters together never reserve more
than bulk could use now. An interactive request may start when on each of its devices
    used + interactive before + min(bulk before, bulkLimit - bulk in use) < limit
a bulk one when bulk in use + bulk before < bulkLimit as well (then the min is "bulk before").
No starvation: on a device of the first of all waiters, once used < limit (and for a bulk one bulk
in use < bulkLimit) holds, it stays true, because every later request counts the first one's
reservation; and it becomes true when a stream there ends. So the first waits no longer than the
longest stream running on one of its devices. No request holds anything while waiting: no deadlock.
]]
local P = string.sub(KEYS[1], 1, -2)
local REPLICA = ARGV[1]
local STREAMS = tonumber(ARGV[2])
local RECOVER_MS = tonumber(ARGV[3])
local OPEN_MS = tonumber(ARGV[4])
-- The least common multiple of all weights and more, so that tags stay integers.
local COST = 840
local WEIGHTS = { interactive = 8, bulk = 1 }

local now, recoverUntil, floor, topTag, writtenTop, knownRun, askedRun

-- Reads the clock of Redis in ms; it never goes back, even if an administrator sets it back.
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

-- Whether no grants are allowed now. Checks whether this server is the one that wrote the state. Every script calls it
-- before it grants, and only then, because the check costs as much as ten others.
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

-- Whether a replica has its lease. A replica without one is never reaped, and anything granted to it would stay
-- forever.
local alive = {}
local function isAlive(replica)
  if alive[replica] == nil then alive[replica] = redis.call('ZSCORE', P .. 'hb', replica) end
  return alive[replica]
end

-- Lua would format large numbers with an exponent. Numbers passed to Redis directly are formatted in full.
local function wholeNumber(number) return string.format('%d', number) end

local function queueKey(class, device) return P .. (class == 'bulk' and 'qb:' or 'q:') .. device end

local function flowOf(class, user) return class .. ':' .. user end

-- Sequence numbers in the form used in the queues, where the smaller text comes first if tags are equal.
local function sequenceText(seq) return string.format('%012d', seq) end
