-- Note a change of a user's (or a collection's) state and claim alerts, so that one worker alone sends each.
--
-- KEYS[1] state hash; KEYS[2], if given, the baseline hash, whose running day is then left out of any baseline
-- ARGV[1] now, microseconds; ARGV[2] lifetime of the state, microseconds; ARGV[3] enter, extend, release or none
-- ARGV[4...] pairs: kind of alert, microseconds during which it is not sent again
-- Returns, for every pair, 1 if it may be sent now.

local now, lifetime, change = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = string.format('%.0f', now)

if change == 'enter' then
  redis.call('HSETNX', KEYS[1], 'since', time)
  redis.call('HSET', KEYS[1], 'over', time)
elseif change == 'extend' then
  redis.call('HSET', KEYS[1], 'over', time)
elseif change == 'release' then
  redis.call('HDEL', KEYS[1], 'since', 'over')
end

-- Another worker's mark may be a little younger than this query; one much younger was made before the clock went back.
local YOUNGER = 60000000

local won = {}
for position = 4, #ARGV, 2 do
  local field = 'a:' .. ARGV[position]
  local last = tonumber(redis.call('HGET', KEYS[1], field) or '-1')
  local free = last < 0 or now - last > tonumber(ARGV[position + 1]) or last - now > YOUNGER
  if free then redis.call('HSET', KEYS[1], field, time) end
  won[#won + 1] = free and 1 or 0
end

-- An entry of the allow-list may have to live longer.
if redis.call('EXISTS', KEYS[1]) == 1 then
  local rest = redis.call('PTTL', KEYS[1])
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(rest, math.ceil(lifetime / 1000))))
end
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('HSET', KEYS[2], 'f:' .. string.format('%.0f', math.floor(now / 86400000000)), 1)
end
return won
