-- KEYS: the set, the ends of bans. ARGV: a member. Answers whether it was in the set.
local wrong = want(KEYS[1], 'set') or want(KEYS[2], 'zset')
if wrong then return wrong end
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('SREM', KEYS[1], ARGV[1])
