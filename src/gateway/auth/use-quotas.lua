--[[
Atomically records what holders of quotas use, across all gateways and workers: running streams and bytes of the day.
Called repeatedly while a stream runs, which keeps its place. Not idempotent: a repeated call counts its bytes twice.

  KEYS[1]      "{prefix:quota}:", prefix of all other keys
  ARGV[1]      id of the download or the export
  ARGV[2]      how long its place is kept without another call, ms; 0: takes no place, or gives it back
  ARGV[3]      bytes sent since the last call; "": it starts now and needs a free place
  ARGV[4..]    triples: holder, maximum number of streams or "", maximum bytes per day or ""

Keys:
  s:<holder>        ZSET  id -> when its place expires, ms
  b:<holder>:<day>  STRING  bytes of the UTC day (numbered from 1970)

Returns {"ok"}; or {"streams", holder}, with nothing changed, if it starts and no place is free; or {"bytes", holder} if
the bytes of the day are used up, in which case everything is still recorded.
]]
local DAY_MS = 86400000
local id, keptMs, begins = ARGV[1], tonumber(ARGV[2]), ARGV[3] == ''
local bytes = begins and '0' or ARGV[3]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local day = math.floor(nowMs / DAY_MS)

local function streamsOf(holder) return KEYS[1] .. 's:' .. holder end

for i = 4, #ARGV, 3 do
  local holder, most = ARGV[i], tonumber(ARGV[i + 1])
  local key = streamsOf(holder)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', nowMs)
  local isNew = most and begins and not redis.call('ZSCORE', key, id)
  if isNew and redis.call('ZCARD', key) >= most then return { 'streams', holder } end
end

local full
for i = 4, #ARGV, 3 do
  local holder, most, bytesMost = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if most and keptMs > 0 then
    redis.call('ZADD', streamsOf(holder), nowMs + keptMs, id)
    redis.call('PEXPIRE', streamsOf(holder), keptMs)
  elseif most then
    redis.call('ZREM', streamsOf(holder), id)
  end
  if bytesMost then
    local key = KEYS[1] .. 'b:' .. holder .. ':' .. day
    local used = redis.call('INCRBY', key, bytes)
    redis.call('PEXPIRE', key, 2 * DAY_MS)
    if used >= bytesMost then full = full or holder end
  end
end
return full and { 'bytes', full } or { 'ok' }
