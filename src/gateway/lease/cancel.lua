--[[
Asks the replica that has a request to cancel it: the request ends there, and so does whatever runs under its lease.

  ARGV[5]  id
  ARGV[6]  who cancels it

Returns the state of the request: "w" or "g"; "s" if its replica does not answer, so that nobody can cancel it; "" if
there is no such request.
]]
enter()
local request = readRequest(ARGV[5])
if not request then return '' end
if not isAlive(request.owner) then return 's' end
redis.call('RPUSH', P .. 'in:' .. request.owner, 'cancel ' .. request.id .. ' ' .. ARGV[6])
return request.state
