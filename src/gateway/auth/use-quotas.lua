--[[
Notes what a holder of quotas uses, over all gateways and workers, in one step: streams that run, and bytes of the day.
Asked again and again while a stream runs, which keeps its place; what comes twice counts its bytes twice.

  KEYS[1]      "{prefix:quota}:", what all other keys begin with
  ARGV[1]      id of the download or the export
  ARGV[2]      how long its place is kept without being asked for again, ms; 0: it takes none, or gives it back
  ARGV[3]      bytes sent since the last time; "": it begins now, and has to find a place
  ARGV[4..]    triples: holder, streams at most or "", bytes of a day at most or ""

Keys:
  s:<holder>        ZSET  id -> when its place lapses, ms
  b:<holder>:<day>  STRING  bytes of the day of UTC (its number since 1970)

Returns {"ok"}; or {"streams", holder} for one that begins and finds no place, and nothing is changed; or {"bytes", holder}
when the bytes of the day are used up, and everything is noted all the same.
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
