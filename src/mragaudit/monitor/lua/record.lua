-- Record one query of one user and count all windows, in one atomic step.
--
-- Everything that left a window is trimmed before anything is counted. A query id that is still in a window adds
-- nothing. Times are microseconds since 1970 by the server's clock; a replay passes its own.
--
-- The settings stand before this text, as a table CONFIG (see calls.py); so they are neither sent nor parsed each time.
-- KEYS: the user's, then the tenant's; either part may be missing (on a cluster they lie on different nodes).
-- ARGV[1] now, or '' for the server's clock; ARGV[2] number of the user's keys
-- ARGV[3] query; ARGV[4] collection; ARGV[5] user
-- ARGV[6...] retrieved documents by level: level, number of documents, document ids

local DAY = 86400000000
local COLLECTIONS = 256 -- most collections remembered a user

local function stamp(time) return string.format('%.0f', time) end
local function older_than(time) return '(' .. stamp(time) end

local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function expire(key, microseconds)
  redis.call('PEXPIRE', key, stamp(math.ceil(microseconds / 1000)))
end

-- One slot of a ring of sketches holds one sub-window; a slot that holds an older one is emptied before use.
-- `lifetime` counts from the beginning of a sub-window, when a slot is first written.
local function ring_add(meta, slots, now, width, ids, lifetime)
  local epoch = math.floor(now / width)
  local position = epoch % #slots + 1
  local field = 'e' .. position
  if #ids == 0 then return end
  local held = tonumber(redis.call('HGET', meta, field) or '-1')
  if held >= epoch then
    -- After the clock went back by a whole ring the slot is a newer one: what is added counts for longer, never shorter.
    redis.call('PFADD', slots[position], unpack(ids))
    return
  end
  redis.call('DEL', slots[position])
  redis.call('PFADD', slots[position], unpack(ids))
  expire(slots[position], lifetime)
  redis.call('HSET', meta, field, stamp(epoch))
  expire(meta, lifetime)
end

local function ring_count(meta, slots, now, width, window)
  local oldest = math.floor((now - window) / width)
  local fields, live = {}, {}
  for position = 1, #slots do fields[position] = 'e' .. position end
  for position, held in ipairs(redis.call('HMGET', meta, unpack(fields))) do
    if tonumber(held or '-1') >= oldest then live[#live + 1] = slots[position] end
  end
  if #live == 0 then return 0 end
  return redis.call('PFCOUNT', unpack(live))
end

-- Take forgotten answers' documents out of the running totals.
local function forget(keys, queries)
  for _, query in ipairs(queries) do
    local packed = redis.call('HGET', keys.levels, 'q:' .. query)
    if packed then
      for level, count in string.gmatch(packed, '([^=,]+)=(%d+)') do
        redis.call('HINCRBY', keys.levels, 'l:' .. level, -tonumber(count))
      end
      redis.call('HDEL', keys.levels, 'q:' .. query)
    end
    redis.call('ZREM', keys.returned, query)
  end
end

-- Drop the oldest members beyond a bound; returns how many are left.
local function keep_newest(key, most)
  local held = redis.call('ZCARD', key)
  if held <= most then return held end
  redis.call('ZREMRANGEBYRANK', key, 0, held - most - 1)
  return most
end

-- Which of the documents did the user add? One read for all; the field '+' counts those beyond the bound.
local function own_documents(key, ids)
  local kept = redis.call('HLEN', key)
  if kept == 0 then return {}, 0 end
  local fields = redis.call('HMGET', key, '+', unpack(ids))
  local own = {}
  for position, id in ipairs(ids) do own[id] = fields[position + 1] and true or nil end
  expire(key, CONFIG.own_lifetime)
  local beyond = fields[1]
  return own, beyond and kept - 1 + tonumber(beyond) or kept
end

-- The share of sensitive documents on the preceding days without an alert, summed up once a day.
local function baseline(key, now)
  local today = stamp(math.floor(now / DAY))
  local known = redis.call('HMGET', key, 'today', 'sensitive', 'total', 'days')
  if known[1] == today then return today, tonumber(known[2]), tonumber(known[3]), tonumber(known[4]) end
  local fields = redis.call('HGETALL', key)
  local by_name = {}
  for position = 1, #fields, 2 do by_name[fields[position]] = fields[position + 1] end
  local before = math.floor((now - CONFIG.returned_window) / DAY)
  local sensitive, total, days = 0, 0, 0
  for name, value in pairs(by_name) do
    local prefix, number = string.match(name, '^([tsf]):(%d+)$')
    number = tonumber(number)
    if prefix and number < before - CONFIG.baseline_days then
      redis.call('HDEL', key, name)
    elseif prefix == 't' and number < before and not by_name['f:' .. stamp(number)] then
      total = total + tonumber(value)
      sensitive = sensitive + tonumber(by_name['s:' .. stamp(number)] or 0)
      days = days + 1
    end
  end
  redis.call('HSET', key, 'today', today, 'sensitive', sensitive, 'total', total, 'days', days)
  expire(key, (CONFIG.baseline_days + 2) * DAY + CONFIG.returned_window)
  return today, sensitive, total, days
end

local function keys_of_user(count)
  local keys = {
    volume = KEYS[1], returned = KEYS[2], levels = KEYS[3], sensitive = KEYS[4], base = KEYS[5],
    state = KEYS[6], collections = KEYS[7], own = KEYS[8], coverage = KEYS[9], slots = {},
  }
  for slot = 1, CONFIG.ring do keys.slots[slot] = KEYS[9 + slot] end
  if count > 9 + CONFIG.ring then keys.size = KEYS[count] end
  return keys
end

-- The first write: one that a full memory forbids. After any other, Redis would let the rest grow beyond maxmemory.
local function note_collection(keys, now)
  if redis.call('ZADD', keys.collections, 'GT', stamp(now), ARGV[4]) > 0 then
    keep_newest(keys.collections, COLLECTIONS)
  end
end

local function trim(keys, now)
  local returned_before = older_than(now - CONFIG.returned_window)
  redis.call('ZREMRANGEBYSCORE', keys.volume, '-inf', older_than(now - CONFIG.volume_window))
  forget(keys, redis.call('ZRANGEBYSCORE', keys.returned, '-inf', returned_before))
  redis.call('ZREMRANGEBYSCORE', keys.sensitive, '-inf', returned_before)
  if CONFIG.ring == 0 then
    redis.call('ZREMRANGEBYSCORE', keys.coverage, '-inf', older_than(now - CONFIG.coverage_window))
  end
end

-- The retrieved documents: all ids, and the stretch of them that each level has.
local function documents()
  local ids, groups = {}, {}
  local position = 6
  while position <= #ARGV do
    local count = tonumber(ARGV[position + 1])
    groups[#groups + 1] = { level = ARGV[position], first = #ids + 1, last = #ids + count }
    for offset = 1, count do ids[#ids + 1] = ARGV[position + 1 + offset] end
    position = position + 2 + count
  end
  return ids, groups
end

-- Sort what others added: ids, ids with their time, sensitive ones with their time, counts by level.
local function sorted_documents(ids, groups, own, time)
  local found = { ids = {}, seen = {}, sensitive = {}, packed = {}, total = 0, total_sensitive = 0 }
  for _, group in ipairs(groups) do
    local count, sensitive = 0, CONFIG.sensitive[group.level]
    for index = group.first, group.last do
      local id = ids[index]
      if not own[id] then
        count = count + 1
        found.ids[#found.ids + 1] = id
        found.seen[#found.seen + 1], found.seen[#found.seen + 2] = time, id
        if sensitive then
          local named = ARGV[4] .. '/' .. id
          found.sensitive[#found.sensitive + 1], found.sensitive[#found.sensitive + 2] = time, named
        end
      end
    end
    if count > 0 then found.packed[#found.packed + 1] = { group.level, count } end
    found.total = found.total + count
    if sensitive then found.total_sensitive = found.total_sensitive + count end
  end
  return found
end

local function record_totals(keys, query, found, today)
  local packed = {}
  for position, pair in ipairs(found.packed) do
    packed[position] = pair[1] .. '=' .. pair[2]
    redis.call('HINCRBY', keys.levels, 'l:' .. pair[1], pair[2])
  end
  redis.call('HSET', keys.levels, 'q:' .. query, table.concat(packed, ','))
  redis.call('HINCRBY', keys.base, 't:' .. today, found.total)
  if found.total_sensitive > 0 then redis.call('HINCRBY', keys.base, 's:' .. today, found.total_sensitive) end
end

local function record_coverage(keys, found, now)
  if CONFIG.ring > 0 then
    local lifetime = CONFIG.coverage_window + 2 * CONFIG.sub_window + CONFIG.margin
    ring_add(keys.coverage, keys.slots, now, CONFIG.sub_window, found.ids, lifetime)
  elseif found.total > 0 then
    redis.call('ZADD', keys.coverage, 'GT', unpack(found.seen))
  end
end

-- Returns false, having added nothing, where the query is known.
local function record(keys, found, now, today)
  local time, query = stamp(now), ARGV[3]
  if redis.call('ZSCORE', keys.returned, query) then return false end
  if redis.call('ZADD', keys.volume, 'NX', time, query) == 0 then return false end
  redis.call('ZADD', keys.returned, time, query)
  if found.total > 0 then record_totals(keys, query, found, today) end
  record_coverage(keys, found, now)
  if found.total_sensitive > 0 then
    redis.call('ZADD', keys.sensitive, 'GT', unpack(found.sensitive))
    keep_newest(keys.sensitive, CONFIG.coverage_most)
    expire(keys.sensitive, CONFIG.returned_window + CONFIG.margin)
  end
  return true
end

-- Bound memory; returns queries and distinct documents.
local function bound(keys, now)
  local queries = keep_newest(keys.volume, CONFIG.volume_most)
  local excess = redis.call('ZCARD', keys.returned) - CONFIG.returned_most
  if excess > 0 then forget(keys, redis.call('ZRANGE', keys.returned, 0, excess - 1)) end
  local distinct
  if CONFIG.ring == 0 then
    distinct = keep_newest(keys.coverage, CONFIG.coverage_most)
    expire(keys.coverage, CONFIG.coverage_window + CONFIG.margin)
  else
    distinct = ring_count(keys.coverage, keys.slots, now, CONFIG.sub_window, CONFIG.coverage_window)
  end
  expire(keys.volume, CONFIG.volume_window + CONFIG.margin)
  expire(keys.returned, CONFIG.returned_window + CONFIG.margin)
  expire(keys.levels, CONFIG.returned_window + CONFIG.margin)
  expire(keys.collections, CONFIG.coverage_window + CONFIG.margin)
  return queries, distinct
end

local function size_of_collection(key)
  local size = key and redis.call('HMGET', key, 'size', 'version') or {}
  if size[1] then expire(key, CONFIG.size_lifetime) end
  return tonumber(size[1] or -1), tonumber(size[2] or -1)
end

local function record_user(keys, ids, groups, now)
  note_collection(keys, now)
  trim(keys, now)
  local own, own_count = own_documents(keys.own, ids)
  local today, base_sensitive, base_total, base_days = baseline(keys.base, now)
  local new = record(keys, sorted_documents(ids, groups, own, stamp(now)), now, today)
  local queries, distinct = bound(keys, now)
  local size, version = size_of_collection(keys.size)
  return {
    new and 0 or 1, queries, distinct, own_count, redis.call('ZCARD', keys.sensitive),
    base_sensitive, base_total, base_days, size, version,
    redis.call('HMGET', keys.levels, unpack(CONFIG.level_fields)), redis.call('HGETALL', keys.state),
  }
end

-- What all users of a tenant retrieved of a collection, and who asked last. Uniting the sketches costs more than all
-- the rest, so the count is kept for a while; it only ever raises an alert about the collection.
local function record_collective(first, ids, now)
  local active, meta, slots = KEYS[first], KEYS[first + 1], {}
  for slot = first + 2, #KEYS do slots[slot - first - 1] = KEYS[slot] end
  local window, width = CONFIG.collective_window, CONFIG.collective_sub_window
  local lifetime = window + 2 * width + CONFIG.margin
  if redis.call('ZADD', active, 'GT', stamp(now), ARGV[5]) > 0 then
    keep_newest(active, CONFIG.collective_most)
    expire(active, lifetime)
  end
  ring_add(meta, slots, now, width, ids, lifetime)
  local known = redis.call('HMGET', meta, 'count', 'counted', 'a:collection')
  local count, counted = tonumber(known[1]), tonumber(known[2] or '-1')
  if not count or now - counted > CONFIG.collective_fresh or counted > now then
    count = ring_count(meta, slots, now, width, window)
    redis.call('HSET', meta, 'count', count, 'counted', stamp(now))
    expire(meta, lifetime)
    expire(active, lifetime)
  end
  return { count, known[3] or '0' }
end

local now, user_keys = clock(ARGV[1]), tonumber(ARGV[2])
local ids, groups = documents()
local reply = { stamp(now), false, false }
if user_keys > 0 then reply[2] = record_user(keys_of_user(user_keys), ids, groups, now) end
if #KEYS > user_keys then reply[3] = record_collective(user_keys + 1, ids, now) end
return reply
