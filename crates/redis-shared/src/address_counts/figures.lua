-- KEYS: what is known of periods. Answers how many were closed, how much was counted in them, and the
-- milliseconds until the present one is over ('' if none has begun).
local wrong = want(KEYS[1], 'hash')
if wrong then return wrong end
local known = redis.call('HMGET', KEYS[1], 'closed', 'counted', 'due')
local due = tonumber(known[3] or '')
local left = due and whole(math.max(due - milliseconds(), 0)) or ''
return { known[1] or '0', known[2] or '0', left }
