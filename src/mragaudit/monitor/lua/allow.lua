-- Put a user on the allow-list, or take the user off it. Throttling ends at once.
--
-- KEYS[1] state hash; KEYS[2] hash with the reason
-- ARGV[1] now, or '' for the server's clock; ARGV[2] for how long, 0 to take off; ARGV[3] reason
-- ARGV[4] for how long the rest of the state lives at least. Times are microseconds.
-- Returns now and the end; with 0 now and whether there was an entry.

local function stamp(time) return string.format('%.0f', time) end

local now, length = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
if length == 0 then
  redis.call('DEL', KEYS[2])
  return { stamp(now), redis.call('HDEL', KEYS[1], 'allow') }
end

redis.call('HSET', KEYS[1], 'allow', stamp(now + length)) -- first what a full memory refuses
redis.call('HDEL', KEYS[1], 'since', 'over')
redis.call('HSET', KEYS[2], 'since', stamp(now), 'until', stamp(now + length), 'reason', ARGV[3])
local lifetime = math.ceil((length + tonumber(ARGV[4])) / 1000)
redis.call('PEXPIRE', KEYS[1], math.max(lifetime, redis.call('PTTL', KEYS[1])))
redis.call('PEXPIRE', KEYS[2], lifetime)
return { stamp(now), stamp(now + length) }
