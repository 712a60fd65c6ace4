--[[
Tells of the streams under a grant of the calling replica.

  ARGV[5]  "opened": all of them have begun; "reopening": one has ended and is opened again
  ARGV[6]  turn of the grant
  ARGV[7]  its id

Does nothing for a grant that is none any more.
]]
enter()
local request = readRequest(ARGV[7])
if not request or request.owner ~= REPLICA then return end
if request.state ~= 'g' or request.turn ~= tonumber(ARGV[6]) then return end
noteBegun(request, ARGV[5] == 'opened')
