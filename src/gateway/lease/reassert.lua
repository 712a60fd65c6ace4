--[[
Makes Redis agree with what the calling replica really has, after a lapse, a reconnect or a loss of data
in Redis. Running streams count, even above the limit: none is ever cut to make the numbers agree. A
waiter gets its old place back, even if its grant became a suspect before it arrived.

  ARGV[5]  JSON: [[id, "device,device", class, user, "open" | "held" | "waiting", tag, sequence
           number, attempt, enqueued ms], ...]: a part of what it has
  ARGV[6]  "1" if this is the last part and no other gateway can have anything: recovery ends, unless there was
           a worker, which may have more than Redis knows

Returns the new state of each, in this order: "g" or "w".
]]
enter()
recovering()

local function wait(request, known)
  -- A grant that became a suspect is void: the device's number of readers does not tell which of two suspects is
  -- streaming, so the one that was freed, and whose stream another request has now, may be the one that is running.
  if known and known.state == 'g' and known.attempt >= request.attempt then return false end
  if known and known.state == 'w' then return true end
  if known then
    for _, device in ipairs(known.devices) do freeStream(known, device) end
  end
  local start = request.tag - COST * #request.devices / WEIGHTS[request.class]
  local uses = readUses(request.devices)
  for _, use in ipairs(uses) do
    -- Newcomers must not overtake it because the virtual time of its device was lost.
    if isIdle(use) then redis.call('ZADD', use.flows, start, '')
    elseif not known then redis.call('ZADD', use.flows, 'LT', start, '') end
    use.idle = false
  end
  joinQueues(request, uses)
  return true
end

local function stream(request, known, isOpen)
  if known and known.state == 'w' then leaveQueues(known) end
  for _, device in ipairs(request.devices) do
    local key = P .. 'on:' .. device
    if not redis.call('ZSCORE', key, request.id) then takeStream(request, device, now + OPEN_MS) end
    if isOpen then redis.call('ZADD', key, 'XX', 'LT', now, request.id)
    else redis.call('ZADD', key, 'XX', 'GT', now + OPEN_MS, request.id) end
    if redis.call('ZREM', P .. 'sus:' .. device, request.id) == 1
      and redis.call('EXISTS', P .. 'sus:' .. device) == 0 then
      redis.call('ZREM', P .. 'susd', device)
    end
  end
end

local states = {}
local last = tonumber(redis.call('HGET', KEYS[1], 'seq') or '0')
local rows, ids = cjson.decode(ARGV[5]), {}
for i, row in ipairs(rows) do ids[i] = row[1] end
readRequests(ids)
for i, row in ipairs(rows) do
  local id, devices, class, user, kind, tag, seq, attempt, enqueued = unpack(row)
  local known = readRequest(id)
  local request = newRequest({ id = id, devices = split(devices), class = class, user = user,
                               flow = flowOf(class, user), attempt = attempt, tag = tag, seq = sequenceText(seq),
                               enqueued = wholeNumber(enqueued), state = 'new', granted = known and known.granted or 0 })
  if kind == 'waiting' and wait(request, known) then
    request.state, request.granted = 'w', 0
    markDirty(request.devices)
  else
    request.state = 'g'
    stream(request, known, kind == 'open')
    if request.granted == 0 then request.granted = now end
  end
  addRequest(request)
  last = math.max(last, seq)
  states[i] = request.state
end
writeBack()
redis.call('HSET', KEYS[1], 'seq', last)
if ARGV[6] == '1' and redis.call('ZCARD', P .. 'hb') == 1 then redis.call('HSET', KEYS[1], 'recover', 0) end
return states
