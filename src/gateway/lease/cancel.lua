--[[
Asks the replica that has a request to cancel it: the request ends there, and so does whatever runs under its leases.

  ARGV[5]     id of the request
  ARGV[6]     who cancels it
  ARGV[7]...  ids of its leases: its own id, or those of a request that has several; one replica has all of them

Returns the state of the request: "g" if it has streams, "w" if it only waits; "s" if its replica does not answer, so
that nobody can cancel it; "" if there is no such request.
]]
enter()
local ids = {}
for i = 7, #ARGV do ids[#ids + 1] = ARGV[i] end
readRequests(ids)
local owner, state = nil, ''
for _, id in ipairs(ids) do
  local request = readRequest(id)
  if request then
    owner = request.owner
    if state ~= 'g' then state = request.state end
  end
end
if not owner then return '' end
if not isAlive(owner) then return 's' end
redis.call('RPUSH', P .. 'in:' .. owner, 'cancel ' .. ARGV[5] .. ' ' .. ARGV[6])
return state
