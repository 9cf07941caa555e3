-- Name the newest members of a sorted set, without writing anything.
--
-- KEYS[1] sorted set scored by time; ARGV[1] most members. Returns { members with scores, number of all members }.

local most = tonumber(ARGV[1])
return { redis.call('ZREVRANGE', KEYS[1], 0, most - 1, 'WITHSCORES'), redis.call('ZCARD', KEYS[1]) }
