--[[
Gives a request back in whatever state it is: a waiter leaves the queues (and its reservations), a
grant or suspect frees its places. Then starts whoever may start. An unknown id changes nothing.

  ARGV[3]  id of the request

Returns {state before, position in line}: "w", n; "g" or "s", 0; "", 0 when the id is unknown.
]]
local request = readRequest(ARGV[3])
if not request then return { '', 0 } end
local position = 0
if request.state == 'w' then position = rank(request) + 1 end
forget(request)
pump(request.devices, nowMs())
return { request.state, position }
