--[[
Handles a grant that cannot be used because a device answered that it is busy: someone else is
downloading there. The request returns to its place in the queue, and for a while the device gets no more
streams than it has from us now.

  ARGV[5]  id of the request
  ARGV[6]  the device that is busy
  ARGV[7]  its new attempt, larger than the last; makes repeated calls idempotent
  ARGV[8]  how long the limit stays lowered, ms

Returns {state, position in the queue}: "w", n; "g", 0 if it was granted again since; "", 0 if the id is
unknown.
]]
local device, attempt = ARGV[6], tonumber(ARGV[7])
local request = readRequest(ARGV[5])
if not request then return { '', 0 } end
enter()
if request.attempt < attempt then
  noteOut(request.owner, grantOf(request), false)
  if request.state ~= 'w' then
    for _, name in ipairs(request.devices) do freeStream(request, name) end
  end
  request.state, request.attempt, request.granted = 'w', attempt, 0
  noteChange(request)
  joinQueues(request, readUses(request.devices))
  local use = readUse(device)
  lowerLimit(use, math.min(use.limit, use.used))
  redis.call('ZADD', P .. 'restore', now + ARGV[8], device)
  pump(request.devices)
  writeBack()
  request = readRequest(ARGV[5])
end
if not request then return { '', 0 } end
if request.state ~= 'w' then return { 'g', 0 } end
return { 'w', position(request, readUses(request.devices)) }
