-- Count the windows of one user as record.lua would, without writing anything: a look is no query.
--
-- What has left a window is left out, not trimmed.
-- KEYS[1...9] vol, ret, lev, sens, base, state, own, cov or hll, allow; then the ring's sketches; then, on one
-- server, the collection's size
-- ARGV[1] now, or '' for the server's clock; ARGV[2] most documents to name; ARGV[3] collection
-- ARGV[4...6] windows of volume, coverage and sensitivity; ARGV[7] sketches in the ring, ARGV[8] width of one
-- ARGV[9] days of the baseline; ARGV[10...] sensitivity levels. Times are microseconds.
-- Returns { now, what record.lua's user part returns, false, named documents, allow-list entry }.

local FIXED = 9
local DAY = 86400000000
local function stamp(time) return string.format('%.0f', time) end

local volume, returned, levels, sensitive, base, state = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local own_key, coverage, allow = KEYS[7], KEYS[8], KEYS[9]
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local most, collection = tonumber(ARGV[2]), ARGV[3]
local volume_since, coverage_since = stamp(now - tonumber(ARGV[4])), stamp(now - tonumber(ARGV[5]))
local returned_window = tonumber(ARGV[6])
local returned_since = stamp(now - returned_window)
local ring, width, keep_days = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local size_key = KEYS[FIXED + ring + 1]

local function ring_count()
  local oldest = math.floor((now - tonumber(ARGV[5])) / width)
  local live = {}
  for slot = 1, ring do
    local epoch = tonumber(redis.call('HGET', coverage, 'e' .. slot) or '-1')
    if epoch >= oldest then live[#live + 1] = KEYS[FIXED + slot] end
  end
  if #live == 0 then return 0 end
  return redis.call('PFCOUNT', unpack(live))
end

local function own_count()
  local kept = redis.call('HLEN', own_key)
  local beyond = redis.call('HGET', own_key, '+')
  return beyond and kept - 1 + tonumber(beyond) or kept
end

-- The running totals of the levels, less the answers that have left the window but are not trimmed yet.
local function level_totals()
  local totals, known = {}, {}
  for position = 10, #ARGV do
    known[ARGV[position]] = position - 9
    totals[position - 9] = tonumber(redis.call('HGET', levels, 'l:' .. ARGV[position]) or '0')
  end
  for _, query in ipairs(redis.call('ZRANGEBYSCORE', returned, '-inf', '(' .. returned_since)) do
    local packed = redis.call('HGET', levels, 'q:' .. query) or ''
    for level, count in string.gmatch(packed, '([^=,]+)=(%d+)') do
      local position = known[level]
      if position then totals[position] = totals[position] - tonumber(count) end
    end
  end
  return totals
end

local function baseline()
  local today = math.floor(now / DAY)
  local known = redis.call('HMGET', base, 'today', 'sensitive', 'total', 'days')
  if known[1] == stamp(today) then return tonumber(known[2]), tonumber(known[3]), tonumber(known[4]) end
  local fields = redis.call('HGETALL', base)
  local by_name = {}
  for position = 1, #fields, 2 do by_name[fields[position]] = fields[position + 1] end
  local before = math.floor((now - returned_window) / DAY)
  local secret, total, days = 0, 0, 0
  for name, value in pairs(by_name) do
    local number = tonumber(string.match(name, '^t:(%d+)$'))
    if number and number < before and number >= before - keep_days and not by_name['f:' .. stamp(number)] then
      total = total + tonumber(value)
      secret = secret + tonumber(by_name['s:' .. stamp(number)] or 0)
      days = days + 1
    end
  end
  return secret, total, days
end

-- Newest documents of the collection with when they were last retrieved and whether they are sensitive. Sketches
-- hold no ids; there only sensitive documents can be named.
local function documents()
  local named = {}
  if most == 0 then return named end
  if ring == 0 then
    local found = redis.call('ZREVRANGEBYSCORE', coverage, '+inf', coverage_since, 'WITHSCORES', 'LIMIT', 0, most)
    for position = 1, #found, 2 do
      local secret = redis.call('ZSCORE', sensitive, collection .. '/' .. found[position])
      named[#named + 1] = { found[position], found[position + 1], secret and 1 or 0 }
    end
    return named
  end
  local prefix = collection .. '/'
  local found = redis.call('ZREVRANGEBYSCORE', sensitive, '+inf', returned_since, 'WITHSCORES')
  for position = 1, #found, 2 do
    if #named < most and string.sub(found[position], 1, #prefix) == prefix then
      named[#named + 1] = { string.sub(found[position], #prefix + 1), found[position + 1], 1 }
    end
  end
  return named
end

local distinct = ring == 0 and redis.call('ZCOUNT', coverage, coverage_since, '+inf') or ring_count()
local size = size_key and redis.call('HMGET', size_key, 'size', 'version') or {}
local secret, total, days = baseline()
return {
  stamp(now),
  {
    0,
    redis.call('ZCOUNT', volume, volume_since, '+inf'),
    distinct,
    own_count(),
    redis.call('ZCOUNT', sensitive, returned_since, '+inf'),
    secret,
    total,
    days,
    tonumber(size[1] or -1),
    tonumber(size[2] or -1),
    level_totals(),
    redis.call('HGETALL', state),
  },
  false,
  documents(),
  redis.call('HGETALL', allow),
}
