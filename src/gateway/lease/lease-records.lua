--[[
A script's view of requests and of the use of devices; shared by all scripts, follows lease-rules.lua.
Each is read from Redis once, many at a time if a script knows in advance which it needs. Changes are
made here, and writeBack() at the end of the script writes them: one command per key, however much
changed there. The queues, the flows and the streams on a device are not cached here but read and changed
immediately.

The use of a device has: flows (its key :f), used and bulk (streams in use, and how many of them are bulk),
limit and bulkLimit, lowered (its limit while that is lowered, else nil); idle (whether nobody waits there;
nil until checked).
]]
-- The requests that were read, by id; false if Redis has none with that id.
local requests = {}
local changed = {}
-- The use of each device that was read.
local uses = {}
-- Devices whose use has changed.
local changedUses = {}
-- Owner -> id -> sequence number; false: to be removed.
local own = {}
-- Owner -> grant -> whether it is waiting to be acknowledged.
local out = {}
-- Owner -> grants to wake it with, in order.
local wakes = {}
-- Owners of suspects that were removed.
local lapsedOwners = {}

-- Maximum number of arguments of one command, in whole pairs and triples: Lua can pass some thousands.
local PART = 3000

local function send(command, key, arguments)
  for from = 1, #arguments, PART do
    redis.call(command, key, unpack(arguments, from, math.min(from + PART - 1, #arguments)))
  end
end

local function readFields(key, fields)
  if #fields <= PART then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  for from = 1, #fields, PART do
    local part = redis.call('HMGET', key, unpack(fields, from, math.min(from + PART - 1, #fields)))
    for _, value in ipairs(part) do values[#values + 1] = value end
  end
  return values
end

local function split(names)
  if not string.find(names, ',', 1, true) then return { names } end
  local list = {}
  for name in string.gmatch(names, '[^,]+') do list[#list + 1] = name end
  return list
end

local function namesOf(devices) return #devices == 1 and devices[1] or table.concat(devices, ',') end

local RECORD = '^(%S+) (%S+) (%S+) ((%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (.*))$'

local function parseRequest(id, text)
  local state, attempt, granted, rest, owner, names, class, tag, seq, enqueued, user = string.match(text, RECORD)
  return { id = id, state = state, attempt = tonumber(attempt), granted = tonumber(granted), rest = rest, owner = owner,
           devices = split(names), class = class, tag = tonumber(tag), tagText = tag, seq = seq,
           enqueued = enqueued, user = user, member = seq .. ':' .. id }
end

-- Takes all fields except owner, tagText, member and rest (the part of the text that never changes once read).
local function newRequest(request)
  request.owner = REPLICA
  request.tagText, request.member = wholeNumber(request.tag), request.seq .. ':' .. request.id
  return request
end

local function textOf(request)
  local head = request.state .. ' ' .. wholeNumber(request.attempt) .. ' '
    .. (request.granted == 0 and '0' or wholeNumber(request.granted)) .. ' '
  if request.rest then return head .. request.rest end
  return head .. request.owner .. ' ' .. namesOf(request.devices) .. ' ' .. request.class .. ' '
    .. request.tagText .. ' ' .. request.seq .. ' ' .. request.enqueued .. ' ' .. request.user
end

-- Reads many requests at once, before readRequest() is called for them.
local function readRequests(ids)
  local unread = {}
  for i = 1, #ids do
    local id = ids[i]
    if requests[id] == nil then
      requests[id] = false
      unread[#unread + 1] = id
    end
  end
  if #unread == 0 then return end
  local texts = readFields(P .. 'r', unread)
  for i = 1, #unread do
    local id = unread[i]
    if texts[i] then requests[id] = parseRequest(id, texts[i]) end
  end
end

-- The request, or false if it does not exist.
local function readRequest(id)
  if requests[id] == nil then readRequests({ id }) end
  return requests[id]
end

local function noteOwn(request, seq)
  own[request.owner] = own[request.owner] or {}
  own[request.owner][request.id] = seq
end

local function noteOut(owner, grant, waits)
  out[owner] = out[owner] or {}
  out[owner][grant] = waits
end

local function grantOf(request) return wholeNumber(request.attempt) .. ' ' .. request.id end

-- Marks the request to be written back.
local function noteChange(request) changed[request.id] = true end

local function addRequest(request)
  requests[request.id] = request
  noteChange(request)
  noteOwn(request, request.seq)
end

local function dropRequest(request)
  requests[request.id] = false
  noteChange(request)
  noteOwn(request, false)
  noteOut(request.owner, grantOf(request), false)
  if request.state == 's' then lapsedOwners[request.owner] = true end
end

local function wakeOwner(request)
  local grant = grantOf(request)
  noteOut(request.owner, grant, true)
  wakes[request.owner] = wakes[request.owner] or {}
  table.insert(wakes[request.owner], grant)
end

-- One stream of a device is never given to bulk work: an interactive user may want it.
local function bulkLimitOf(limit) return limit > 1 and limit - 1 or limit end

local function setLimit(use, lowered)
  use.lowered = lowered
  use.limit = lowered and math.min(STREAMS, lowered) or STREAMS
  use.bulkLimit = bulkLimitOf(use.limit)
end

local function lowerLimit(use, limit)
  setLimit(use, limit)
  changedUses[use.device] = true
end

local function restoreLimit(use)
  setLimit(use, nil)
  changedUses[use.device] = true
end

-- The use of each of `devices`, in order.
local function readUses(devices)
  local list, unread = {}, {}
  for i = 1, #devices do
    local device = devices[i]
    if not uses[device] then
      uses[device] = { device = device, flows = P .. 'f:' .. device, used = 0, bulk = 0, limit = 0, bulkLimit = 0,
                         lowered = nil, idle = nil }
      unread[#unread + 1] = device
    end
    list[i] = uses[device]
  end
  if #unread == 0 then return list end
  local texts = readFields(P .. 'use', unread)
  for i = 1, #unread do
    local use, lowered = uses[unread[i]], nil
    if texts[i] then
      local used, bulk, limit = string.match(texts[i], '^(%d+) (%d+) ?(%d*)$')
      use.used, use.bulk, lowered = tonumber(used), tonumber(bulk), tonumber(limit)
    end
    setLimit(use, lowered)
  end
  return list
end

local function readUse(device) return uses[device] or readUses({ device })[1] end

local function addUse(use, request, count)
  use.used = use.used + count
  if request.class == 'bulk' then use.bulk = use.bulk + count end
  changedUses[use.device] = true
end

local function writeRequests()
  local kept, gone, count = {}, {}, 0
  for id in pairs(changed) do
    local request = requests[id]
    if request then
      count = count + 2
      kept[count - 1], kept[count] = id, textOf(request)
    else
      gone[#gone + 1] = id
    end
  end
  send('HSET', P .. 'r', kept)
  send('HDEL', P .. 'r', gone)
  changed = {}
end

local function writeOwn()
  for owner, seqs in pairs(own) do
    local kept, gone, count = {}, {}, 0
    for id, seq in pairs(seqs) do
      if seq then
        count = count + 2
        kept[count - 1], kept[count] = seq, id
      else
        gone[#gone + 1] = id
      end
    end
    send('ZADD', P .. 'own:' .. owner, kept)
    send('ZREM', P .. 'own:' .. owner, gone)
  end
  for owner in pairs(lapsedOwners) do
    if redis.call('EXISTS', P .. 'own:' .. owner) == 0 then redis.call('ZREM', P .. 'lapsed', owner) end
  end
  own, lapsedOwners = {}, {}
end

local function writeGrants()
  for owner, grants in pairs(out) do
    local kept, gone = {}, {}
    for grant, waits in pairs(grants) do
      local list = waits and kept or gone
      list[#list + 1] = grant
    end
    send('SADD', P .. 'out:' .. owner, kept)
    send('SREM', P .. 'out:' .. owner, gone)
  end
  for owner, grants in pairs(wakes) do send('RPUSH', P .. 'in:' .. owner, grants) end
  out, wakes = {}, {}
end

local function writeUses()
  local kept, gone = {}, {}
  for device in pairs(changedUses) do
    local use = uses[device]
    if use.used > 0 or use.lowered then
      kept[#kept + 1] = device
      kept[#kept + 1] = use.used .. ' ' .. use.bulk .. (use.lowered and ' ' .. use.lowered or '')
    else
      gone[#gone + 1] = device
    end
  end
  send('HSET', P .. 'use', kept)
  send('HDEL', P .. 'use', gone)
  changedUses = {}
end

local function writeBack()
  writeRequests()
  writeOwn()
  writeGrants()
  writeUses()
  if topTag ~= writtenTop then
    redis.call('HSET', KEYS[1], 'v', wholeNumber(topTag))
    writtenTop = topTag
  end
end
