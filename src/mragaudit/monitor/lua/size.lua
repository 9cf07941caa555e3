-- Set a collection's size, or read it. KEYS[1] hash; ARGV[1] lifetime, microseconds; ARGV[2] size, or '' to read.
-- Returns size and version, -1 and -1 where nothing is known. Every write makes the version one larger.

if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'size', ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'version', 1)
end
local entry = redis.call('HMGET', KEYS[1], 'size', 'version')
if not entry[1] then return { -1, -1 } end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(tonumber(ARGV[1]) / 1000)))
return { tonumber(entry[1]), tonumber(entry[2]) }
