-- Give a delayed request's place back. KEYS[1] sorted set of held requests; ARGV[1] request.
return redis.call('ZREM', KEYS[1], ARGV[1])
