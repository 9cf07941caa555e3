-- Forget a user's windows and throttling. It only deletes, so that a full memory does not stop it half-way.
--
-- KEYS[1] state hash; KEYS[2...] keys to delete; ARGV[1] 1 to forget the allow-list entry in the state as well.
-- Returns how many keys were there.

local gone = redis.call('EXISTS', KEYS[1])
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'allow' or ARGV[1] == '1' then redis.call('HDEL', KEYS[1], field) end
end
for position = 2, #KEYS do gone = gone + redis.call('DEL', KEYS[position]) end
return gone
