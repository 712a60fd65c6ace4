--[[
Takes the calling replica out of the scheduler at its end: everything it has is given back.
]]
forgetAll(REPLICA, nowMs())
redis.call('DEL', P .. 'own:' .. REPLICA, P .. 'in:' .. REPLICA, P .. 'out:' .. REPLICA)
redis.call('ZREM', P .. 'hb', REPLICA)
redis.call('ZREM', P .. 'lapsed', REPLICA)
return redis.status_reply('OK')
