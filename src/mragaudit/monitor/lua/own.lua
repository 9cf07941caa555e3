-- Note documents that a user added to a collection, or took out again.
--
-- KEYS[1] hash: document -> 1, and '+' -> how many more there are beyond the bound
-- ARGV[1] lifetime, microseconds; ARGV[2] most ids kept; ARGV[3] add or remove; ARGV[4...] document ids
-- Returns how many documents of the user the collection holds.

local key, most = KEYS[1], tonumber(ARGV[2])
local beyond = tonumber(redis.call('HGET', key, '+') or '0')
for position = 4, #ARGV do
  if ARGV[3] == 'add' then
    local kept = redis.call('HLEN', key) - (beyond > 0 and 1 or 0)
    if redis.call('HEXISTS', key, ARGV[position]) == 0 then
      if kept < most then
        redis.call('HSET', key, ARGV[position], 1)
      else
        beyond = redis.call('HINCRBY', key, '+', 1)
      end
    end
  elseif redis.call('HDEL', key, ARGV[position]) == 0 and beyond > 0 then
    beyond = redis.call('HINCRBY', key, '+', -1)
    if beyond == 0 then redis.call('HDEL', key, '+') end
  end
end
local kept = redis.call('HLEN', key) - (beyond > 0 and 1 or 0)
if kept + beyond > 0 then
  redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(tonumber(ARGV[1]) / 1000)))
end
return kept + beyond
