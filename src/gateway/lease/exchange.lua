--[[
Requests streams and releases requests: a batch from one replica, in order.

  ARGV[5]  JSON: one array (parsed in half the time of nested ones), with five members per ask:
             attempt, id, comma-separated devices without duplicates, class, user: enqueues
             attempt, id, "", "", "": releases
           The attempt is a number that increases with everything a replica requests. A release applies to
           that attempt and earlier ones; enqueuing an id with a later attempt releases the earlier one
           first. So duplicate or late asks do not affect a later request with the same id.

An enqueue asks for one stream on each of its devices at once: all are granted together or none is.
The answer is "state position tag sequence-number enqueued-ms": "g" (granted), 0, ...; "w"
(waits), position in the queue, ...; or just "lapsed" if the replica has no lease of its own and must
send a heartbeat first; or just "taken" if another replica has a request with this id.

A release applies to a request in any state: a waiter leaves the queues (and loses its reservations),
a grant or suspect frees its streams; then every request that may start now is started. The answer is
the state that the request had: "w", "g" or "s"; "" if nothing was changed.

Returns the answers, in order, joined by commas: a single text is built and parsed in less time than a
list of lists.
]]
-- Weight of each stream's duration in the moving average: 1/8.
local HOLD_SHARE = 8
local nowText
-- Number of asks left, including the current one.
local asksLeft

-- Maximum cost of a bulk stream for its duration: a download that follows may never end.
local BULK_COST_MOST = 8

-- Streams that ended, by class: their devices, and the duration of each in ms.
local held = { interactive = { devices = {}, ms = {} }, bulk = { devices = {}, ms = {} } }

local function noteHold(request)
  local ended = held[request.class]
  for _, device in ipairs(request.devices) do
    ended.devices[#ended.devices + 1] = device
    ended.ms[#ended.ms + 1] = math.max(0, now - request.granted)
  end
end

local function writeHolds(key, ended)
  if #ended.devices == 0 then return end
  local known, averages, fields = readFields(key, ended.devices), {}, {}
  for i, device in ipairs(ended.devices) do
    local average = averages[device] or known[i] and tonumber(known[i])
    averages[device] = average and average + (ended.ms[i] - average) / HOLD_SHARE or ended.ms[i]
  end
  for device, average in pairs(averages) do
    fields[#fields + 1] = device
    fields[#fields + 1] = wholeNumber(average)
  end
  send('HSET', key, fields)
end

-- How many times longer a bulk stream takes than others, so that shares are shares of time.
local function bulkCost(uses)
  local names, cost = {}, 1
  for i = 1, #uses do names[i] = uses[i].device end
  local others, bulk = readFields(P .. 'hold', names), readFields(P .. 'holdb', names)
  for i = 1, #names do
    if others[i] and bulk[i] then cost = math.max(cost, bulk[i] / math.max(1, others[i])) end
  end
  return math.min(BULK_COST_MOST, cost)
end

local function chooseTag(uses, class, flow)
  local start, times = floor, class == 'bulk' and bulkCost(uses) or 1
  for i = 1, #uses do
    local use = uses[i]
    if not use.idle then
      local f = redis.call('ZMSCORE', use.flows, '', flow)
      use.idle = not f[1]
      start = math.max(start, tonumber(f[1] or 0), tonumber(f[2] or 0))
    end
  end
  return start + math.floor(COST * #uses / WEIGHTS[class] * times)
end

local function giveBack(request)
  if request.state == 'g' then noteHold(request) end
  forget(request)
  pump(request.devices)
end

local function answer(request, state, line)
  return state .. ' ' .. line .. ' ' .. request.tagText .. ' ' .. request.seq .. ' ' .. request.enqueued
end

local function wait(request, uses, fitting)
  local line = position(request, uses)
  request.state = 'w'
  joinQueues(request, uses)
  if fitting then markDirty(request.devices) end
  return answer(request, 'w', line)
end

-- Sequence numbers for all remaining asks are reserved with the first one; some may stay unused.
local seq, seqsLeft = 0, 0
local function nextSeq()
  if seqsLeft == 0 then
    seqsLeft = asksLeft
    seq = redis.call('HINCRBY', KEYS[1], 'seq', seqsLeft) - seqsLeft
  end
  seq, seqsLeft = seq + 1, seqsLeft - 1
  return seq
end

local function enqueue(id, devices, class, user, attempt)
  local known = readRequest(id)
  if known and known.owner ~= REPLICA then return 'taken' end
  if known and known.attempt >= attempt then
    if known.state ~= 'w' then return answer(known, 'g', 0) end
    return answer(known, 'w', position(known, readUses(known.devices)))
  end
  if known then giveBack(known) end
  if not isAlive(REPLICA) then return 'lapsed' end

  local uses = readUses(devices)
  local flow = flowOf(class, user)
  local request = newRequest({ id = id, devices = devices, class = class, user = user, flow = flow, attempt = attempt,
                               tag = chooseTag(uses, class, flow), seq = sequenceText(nextSeq()),
                               enqueued = nowText, state = 'new', granted = 0 })
  local fitting = fitsAll(request, uses)
  addRequest(request)
  if not fitting or recovering() then return wait(request, uses, fitting) end
  grant(request)
  return answer(request, 'g', 0)
end

local function release(id, attempt)
  local request = readRequest(id)
  if not request or request.owner ~= REPLICA or request.attempt > attempt then return '' end
  giveBack(request)
  return request.state
end

-- Parses the asks: each is {attempt, id, devices, class, user}, a release without the last three. Reads what all of
-- them need.
local function readAsks()
  local asks, ids, devices = {}, {}, {}
  local told = cjson.decode(ARGV[5])
  for i = 1, #told / 5 do
    local at = 5 * i - 4
    local names = told[at + 2]
    asks[i] = { attempt = told[at], id = told[at + 1], devices = names ~= '' and split(names), class = told[at + 3],
                user = told[at + 4] }
    ids[i] = asks[i].id
  end
  readRequests(ids)
  for _, ask in ipairs(asks) do
    local names = ask.devices or (readRequest(ask.id) or ask).devices or {}
    for i = 1, #names do devices[#devices + 1] = names[i] end
  end
  readUses(devices)
  return asks
end

enter()
nowText = wholeNumber(now)
local asks, answers = readAsks(), {}
for i, ask in ipairs(asks) do
  asksLeft = #asks - i + 1
  if ask.devices then answers[i] = enqueue(ask.id, ask.devices, ask.class, ask.user, ask.attempt)
  else answers[i] = release(ask.id, ask.attempt) end
end
writeHolds(P .. 'hold', held.interactive)
writeHolds(P .. 'holdb', held.bulk)
writeBack()
return table.concat(answers, ',')
