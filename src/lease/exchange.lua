--[[
Asks for streams and gives requests back: what one replica has gathered, in the order in which it came.

  ARGV[5]  how many asks follow
  ARGV[6]  and on, each of them:
             "enqueue", id, devices separated by commas, each once, class, user, turn
             "release", id, turn
           The turn is a number that grows with everything that a replica asks for. A release is of
           that turn and of earlier ones; to ask for an id in a later turn gives the earlier one back
           first. So what comes twice, or late, does nothing to a later request of the same id.

An enqueue asks for one stream on each of its devices at once: all are granted together or none is.
It is answered by {state, position, tag, sequence number, enqueued ms}: "g" (granted), 0, ...; "w"
(waits), n-th in line, ...; "lapsed" when the replica has no lease of its own and must send a
heartbeat first; "taken" when another replica has a request of this id.

A release is of a request in whatever state it is: a waiter leaves the queues (and its reservations),
a grant or suspect frees its places; then whoever may start is started. It is answered by {state},
the state that the request had: "w", "g" or "s"; "" when nothing was changed.

Returns the answers, in order.
]]
-- Of each stream's time so much goes into the average, as 1/8.
local HOLD_SHARE = 8
local ASKS = tonumber(ARGV[5])
-- With the one that is worked on.
local asksLeft

local function noteHold(request)
  local known = redis.call('HMGET', P .. 'hold', unpack(request.devices))
  local fields = {}
  for i, device in ipairs(request.devices) do
    local took = math.max(0, now - request.granted)
    local average = known[i] and tonumber(known[i]) + (took - tonumber(known[i])) / HOLD_SHARE or took
    fields[#fields + 1] = device
    fields[#fields + 1] = wholeNumber(average)
  end
  redis.call('HSET', P .. 'hold', unpack(fields))
end

-- A waiter's first place in line: sets its tag. Marks devices where nobody waits in `places`.
local function chooseTag(request, places)
  local start = floor
  for _, place in ipairs(places) do
    local f = redis.call('ZMSCORE', P .. 'f:' .. place.device, '', request.class .. ':' .. request.user)
    place.idle = not f[1]
    if f[1] then start = math.max(start, tonumber(f[1])) end
    if f[2] then start = math.max(start, tonumber(f[2])) end
  end
  request.tag = start + COST * #request.devices / WEIGHTS[request.class]
end

local function giveBack(request)
  if request.state == 'g' then noteHold(request) end
  forget(request)
  pump(request.devices)
end

local function save(request, ...)
  redis.call('HSET', P .. 'r:' .. request.id, 'is', fixedPart(request), 'owner', REPLICA,
             'turn', wholeNumber(request.turn), 'state', ...)
  redis.call('ZADD', P .. 'own:' .. REPLICA, wholeNumber(request.seq), request.id)
end

local function answer(request, state, line)
  return { state, line, wholeNumber(request.tag), request.seq, request.enqueued }
end

-- Whoever has no heartbeat is never reaped, and what it asked for would stay for ever.
local alive
local function isAlive()
  if alive == nil then alive = redis.call('ZSCORE', P .. 'hb', REPLICA) end
  return alive
end

local function grantAtOnce(request)
  for _, device in ipairs(request.devices) do takePlace(request, device, now + OPEN_MS) end
  moveTime(request)
  save(request, 'g', 'grant', now)
  return answer(request, 'g', 0)
end

local function wait(request, places, fitting)
  request.state = 'w'
  for _, place in ipairs(places) do
    if place.idle then redis.call('ZADD', P .. 'f:' .. place.device, floor, '') end
  end
  joinQueues(request)
  save(request, 'w')
  if fitting then markDirty(request.devices) end
  return answer(request, 'w', position(request, places))
end

-- Sequence numbers for all that follow are taken with the first one; some may stay unused.
local seq, seqsLeft = 0, 0
local function nextSeq()
  if seqsLeft == 0 then
    seqsLeft = asksLeft
    seq = redis.call('HINCRBY', KEYS[1], 'seq', seqsLeft) - seqsLeft
  end
  seq, seqsLeft = seq + 1, seqsLeft - 1
  return seq
end

local function enqueue(id, devices, class, user, turn)
  local known = readRequest(id)
  if known and known.owner ~= REPLICA then return { 'taken', 0, '0', 0, '0' } end
  if known and known.turn >= turn then
    if known.state ~= 'w' then return answer(known, 'g', 0) end
    return answer(known, 'w', position(known, readPlaces(known.devices)))
  end
  if known then giveBack(known) end
  if not isAlive() then return { 'lapsed', 0, '0', 0, '0' } end

  local request = { id = id, devices = split(devices), class = class, user = user, turn = turn,
                    owner = REPLICA, enqueued = tostring(now) }
  local places = readPlaces(request.devices)
  chooseTag(request, places)
  request.seq = nextSeq()
  request.member = memberOf(request.seq, id)
  local fitting = fitsAll(request, places)
  if fitting and not recovering() then return grantAtOnce(request) end
  return wait(request, places, fitting)
end

local function release(id, turn)
  local request = readRequest(id)
  if not request or request.owner ~= REPLICA or request.turn > turn then return { '' } end
  giveBack(request)
  return { request.state }
end

enter()
local answers = {}
local at = 6
for i = 1, ASKS do
  asksLeft = ASKS - i + 1
  local id = ARGV[at + 1]
  if ARGV[at] == 'enqueue' then
    answers[i] = enqueue(id, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], tonumber(ARGV[at + 5]))
    at = at + 6
  else
    answers[i] = release(id, tonumber(ARGV[at + 2]))
    at = at + 3
  end
end
return answers
