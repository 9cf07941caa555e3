-- Take one of a user's few places for delayed requests.
--
-- KEYS[1] sorted set of held requests by end; ARGV[1] request, ARGV[2] how long it may be held, microseconds,
-- ARGV[3] places, ARGV[4] now in microseconds or '' for the server's clock. Returns 1 if there was a place.

local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(tonumber(ARGV[2]) / 1000) + 1000))
return 1
