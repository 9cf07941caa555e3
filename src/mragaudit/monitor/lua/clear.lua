-- Forget a user's windows and throttling.
--
-- KEYS[1] state hash; KEYS[2...] keys to delete; ARGV[1] 1 to forget the allow-list entry in the state as well.
-- Returns how many keys were there.

local allowed = ARGV[1] ~= '1' and redis.call('HGET', KEYS[1], 'allow')
local lifetime = redis.call('PTTL', KEYS[1])
local gone = redis.call('DEL', KEYS[1])
if allowed then
  redis.call('HSET', KEYS[1], 'allow', allowed)
  if lifetime > 0 then redis.call('PEXPIRE', KEYS[1], lifetime) end
end
for position = 2, #KEYS do gone = gone + redis.call('DEL', KEYS[position]) end
return gone
