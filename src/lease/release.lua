--[[
Gives a request back in whatever state it is: a waiter leaves the queues (and its reservations), a
grant or suspect frees its places. Then starts whoever may start. An unknown
id, or one of another replica, changes nothing.

  ARGV[5]  id of the request

Returns the state that it had: "w", "g" or "s"; "" when nothing was changed.
]]
-- Of each stream's time so much goes into the average, as 1/8.
local HOLD_SHARE = 8

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

local request = readRequest(ARGV[5])
if not request or request.owner ~= REPLICA then return '' end
enter()
if request.state == 'g' then noteHold(request) end
forget(request)
pump(request.devices)
return request.state
