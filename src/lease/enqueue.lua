--[[
Asks for one stream on each of several devices at once. All are granted together or none is.

  ARGV[5]  id of the request, chosen by the caller
  ARGV[6]  devices, separated by commas, each once
  ARGV[7]  class: interactive | bulk
  ARGV[8]  user

Returns {state, position, tag, sequence number, enqueued ms}: "g" (granted), 0, ...; "w" (waits),
n-th in line, ...; "lapsed" when the replica has no lease of its own and must send a heartbeat first;
"taken" when another replica has a request of this id.
]]
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

local function save(request, ...)
  redis.call('HSET', P .. 'r:' .. request.id, 'is', fixedPart(request), 'owner', REPLICA, 'state', ...)
  redis.call('ZADD', P .. 'own:' .. REPLICA, request.seq, request.id)
end

local id = ARGV[5]
enter()
local known = readRequest(id)
if known then
  if known.owner ~= REPLICA then return { 'taken', 0, '0', 0, '0' } end
  local line = known.state == 'w' and position(known, readPlaces(known.devices)) or 0
  return { known.state == 'w' and 'w' or 'g', line, wholeNumber(known.tag), known.seq, known.enqueued }
end
-- Whoever has no heartbeat is never reaped, and what it asked for would stay for ever.
if not redis.call('ZSCORE', P .. 'hb', REPLICA) then return { 'lapsed', 0, '0', 0, '0' } end

local request = { id = id, devices = split(ARGV[6]), class = ARGV[7], user = ARGV[8],
                  owner = REPLICA, enqueued = now }
local places = readPlaces(request.devices)
chooseTag(request, places)
request.seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
request.member = memberOf(request.seq, id)
local tag = wholeNumber(request.tag)

local fitting = fitsAll(request, places)
if fitting and not recovering() then
  for _, device in ipairs(request.devices) do takePlace(request, device, now + OPEN_MS) end
  moveTime(request)
  save(request, 'g', 'grant', now)
  return { 'g', 0, tag, request.seq, tostring(now) }
end
request.state = 'w'
for _, place in ipairs(places) do
  if place.idle then redis.call('ZADD', P .. 'f:' .. place.device, floor, '') end
end
joinQueues(request)
save(request, 'w')
if fitting then markDirty(request.devices) end
return { 'w', position(request, places), tag, request.seq, tostring(now) }
