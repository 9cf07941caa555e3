-- Record one query of one user and count all windows, in one atomic step.
--
-- Everything that left a window is trimmed before anything is counted. A query id that is still in a window adds
-- nothing. Times are microseconds since 1970 by the server's clock; a replay passes its own.
--
-- ARGV[1] now, or '' for the server's clock
-- ARGV[2] number of the user's keys (0: only the collective part runs)
-- ARGV[3] number of arguments of the user part, which follow; those of the collective part come after them

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

-- Take a forgotten answer's documents out of the running totals.
local function forget(returned, levels, queries)
  for _, query in ipairs(queries) do
    local packed = redis.call('HGET', levels, 'q:' .. query)
    if packed then
      for level, count in string.gmatch(packed, '([^=,]+)=(%d+)') do
        redis.call('HINCRBY', levels, 'l:' .. level, -tonumber(count))
      end
      redis.call('HDEL', levels, 'q:' .. query)
    end
    redis.call('ZREM', returned, query)
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
local function own_documents(key, ids, lifetime)
  local kept = redis.call('HLEN', key)
  if kept == 0 then return {}, 0 end
  local fields = redis.call('HMGET', key, '+', unpack(ids))
  local own = {}
  for position, id in ipairs(ids) do own[id] = fields[position + 1] and true or nil end
  expire(key, lifetime)
  local beyond = fields[1]
  return own, beyond and kept - 1 + tonumber(beyond) or kept
end

-- The share of sensitive documents on the preceding days without an alert, summed up once a day.
local function baseline(key, now, keep_days, window)
  local day = 86400000000
  local today = math.floor(now / day)
  local known = redis.call('HMGET', key, 'today', 'sensitive', 'total', 'days')
  if known[1] == stamp(today) then return today, known[2], known[3], known[4] end
  local fields = redis.call('HGETALL', key)
  local by_name = {}
  for position = 1, #fields, 2 do by_name[fields[position]] = fields[position + 1] end
  local before = math.floor((now - window) / day)
  local sensitive, total, days = 0, 0, 0
  for name, value in pairs(by_name) do
    local prefix, number = string.match(name, '^([tsf]):(%d+)$')
    number = tonumber(number)
    if prefix and number < before - keep_days then
      redis.call('HDEL', key, name)
    elseif prefix == 't' and number < before and not by_name['f:' .. stamp(number)] then
      total = total + tonumber(value)
      sensitive = sensitive + tonumber(by_name['s:' .. stamp(number)] or 0)
      days = days + 1
    end
  end
  redis.call('HSET', key, 'today', stamp(today), 'sensitive', sensitive, 'total', total, 'days', days)
  expire(key, (keep_days + 2) * day + window)
  return today, sensitive, total, days
end

local function record_user(keys, argv, now)
  local volume, returned, levels, sensitive = keys[1], keys[2], keys[3], keys[4]
  local base, state, collections, own_key, coverage = keys[5], keys[6], keys[7], keys[8], keys[9]
  local query, collection = argv[1], argv[2]
  local volume_window, volume_most = tonumber(argv[3]), tonumber(argv[4])
  local coverage_window, coverage_most = tonumber(argv[5]), tonumber(argv[6])
  local returned_window, returned_most = tonumber(argv[7]), tonumber(argv[8])
  local ring, width = tonumber(argv[9]), tonumber(argv[10])
  local keep_days, own_lifetime, margin = tonumber(argv[11]), tonumber(argv[12]), tonumber(argv[13])
  local size_lifetime = tonumber(argv[14])
  local slots = {}
  for slot = 1, ring do slots[slot] = keys[9 + slot] end
  local size_key = keys[10 + ring]

  -- Trim.
  redis.call('ZREMRANGEBYSCORE', volume, '-inf', older_than(now - volume_window))
  forget(returned, levels, redis.call('ZRANGEBYSCORE', returned, '-inf', older_than(now - returned_window)))
  redis.call('ZREMRANGEBYSCORE', sensitive, '-inf', older_than(now - returned_window))
  if ring == 0 then redis.call('ZREMRANGEBYSCORE', coverage, '-inf', older_than(now - coverage_window)) end

  -- Sort the documents: which are new to the signals, which are sensitive.
  local ids = {}
  local groups = {}
  local level_fields = {}
  local level_count = tonumber(argv[15])
  for offset = 1, level_count do level_fields[offset] = 'l:' .. argv[15 + offset] end
  local position = 16 + level_count
  while position <= #argv do
    local group = { level = argv[position], sensitive = argv[position + 1] == '1', first = #ids + 1 }
    local count = tonumber(argv[position + 2])
    for offset = 1, count do ids[#ids + 1] = argv[position + 2 + offset] end
    group.last = #ids
    groups[#groups + 1] = group
    position = position + 3 + count
  end
  local own, own_count = own_documents(own_key, ids, own_lifetime)
  local today, base_sensitive, base_total, base_days = baseline(base, now, keep_days, returned_window)

  -- Record, unless this query is known.
  local time = stamp(now)
  local duplicate = redis.call('ZSCORE', returned, query) or redis.call('ZADD', volume, 'NX', time, query) == 0
  if not duplicate then
    redis.call('ZADD', returned, time, query)
    local seen, seen_ids, secret, packed = {}, {}, {}, {}
    local total, total_sensitive = 0, 0
    for _, group in ipairs(groups) do
      local count = 0
      for index = group.first, group.last do
        local id = ids[index]
        if not own[id] then
          count = count + 1
          seen[#seen + 1], seen[#seen + 2] = time, id
          seen_ids[#seen_ids + 1] = id
          if group.sensitive then secret[#secret + 1], secret[#secret + 2] = time, collection .. '/' .. id end
        end
      end
      if count > 0 then
        packed[#packed + 1] = group.level .. '=' .. count
        redis.call('HINCRBY', levels, 'l:' .. group.level, count)
        total = total + count
        if group.sensitive then total_sensitive = total_sensitive + count end
      end
    end
    if total > 0 then
      redis.call('HSET', levels, 'q:' .. query, table.concat(packed, ','))
      redis.call('HINCRBY', base, 't:' .. stamp(today), total)
      if total_sensitive > 0 then redis.call('HINCRBY', base, 's:' .. stamp(today), total_sensitive) end
      if ring == 0 then redis.call('ZADD', coverage, 'GT', unpack(seen)) end
    end
    if ring > 0 then ring_add(coverage, slots, now, width, seen_ids, coverage_window + 2 * width + margin) end
    if #secret > 0 then
      redis.call('ZADD', sensitive, 'GT', unpack(secret))
      keep_newest(sensitive, coverage_most)
      expire(sensitive, returned_window + margin)
    end
    if redis.call('ZADD', collections, 'GT', time, collection) > 0 then keep_newest(collections, 256) end
  end

  -- Bound memory.
  local queries = keep_newest(volume, volume_most)
  local excess = redis.call('ZCARD', returned) - returned_most
  if excess > 0 then forget(returned, levels, redis.call('ZRANGE', returned, 0, excess - 1)) end
  local distinct
  if ring == 0 then
    distinct = keep_newest(coverage, coverage_most)
    expire(coverage, coverage_window + margin)
  else
    distinct = ring_count(coverage, slots, now, width, coverage_window)
  end
  expire(volume, volume_window + margin)
  expire(returned, returned_window + margin)
  expire(levels, returned_window + margin)
  expire(collections, coverage_window + margin)

  -- Count.
  local size = size_key and redis.call('HMGET', size_key, 'size', 'version') or {}
  if size[1] then expire(size_key, size_lifetime) end
  return {
    duplicate and 1 or 0,
    queries,
    distinct,
    own_count,
    redis.call('ZCARD', sensitive),
    tonumber(base_sensitive or 0),
    tonumber(base_total or 0),
    tonumber(base_days or 0),
    tonumber(size[1] or -1),
    tonumber(size[2] or -1),
    redis.call('HMGET', levels, unpack(level_fields)),
    redis.call('HGETALL', state),
  }
end

-- What all users of a tenant retrieved of a collection, and who asked last. Uniting the sketches costs more than all
-- the rest, so the count is at most `fresh` old; it only ever raises an alert about the collection.
local function record_collective(keys, argv, now)
  local active, meta = keys[1], keys[2]
  local user, window, width = argv[1], tonumber(argv[2]), tonumber(argv[3])
  local most, margin, fresh = tonumber(argv[4]), tonumber(argv[5]), tonumber(argv[6])
  local lifetime = window + 2 * width + margin
  local slots, ids = {}, {}
  for slot = 3, #keys do slots[slot - 2] = keys[slot] end
  for position = 7, #argv do ids[position - 6] = argv[position] end
  if redis.call('ZADD', active, 'GT', stamp(now), user) > 0 then
    keep_newest(active, most)
    expire(active, lifetime)
  end
  ring_add(meta, slots, now, width, ids, lifetime)
  local known = redis.call('HMGET', meta, 'count', 'counted', 'a:collection')
  local count, counted = tonumber(known[1]), tonumber(known[2] or '-1')
  if not count or now - counted > fresh or counted > now then
    count = ring_count(meta, slots, now, width, window)
    redis.call('HSET', meta, 'count', count, 'counted', stamp(now))
    expire(meta, lifetime)
    expire(active, lifetime)
  end
  return { count, known[3] or '0' }
end

local function slice(list, first, last)
  local part = {}
  for position = first, last do part[position - first + 1] = list[position] end
  return part
end

local now = clock(ARGV[1])
local user_keys, user_args = tonumber(ARGV[2]), tonumber(ARGV[3])
local reply = { stamp(now), false, false }
if user_keys > 0 then
  reply[2] = record_user(slice(KEYS, 1, user_keys), slice(ARGV, 4, 3 + user_args), now)
end
if #KEYS > user_keys then
  reply[3] = record_collective(slice(KEYS, user_keys + 1, #KEYS), slice(ARGV, 4 + user_args, #ARGV), now)
end
return reply
