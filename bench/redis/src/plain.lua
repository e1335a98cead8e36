-- A token bucket as gateways usually keep it: a hash of two fields,
-- read, computed by the caller's clock, written back whether the request passed or not, and given
-- a new time to live.
--
-- KEYS[1]: the bucket. ARGV: tokens a second, burst, now in ms, seconds to live.
local rate, burst, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'lastRefill')
local tokens, refilled = tonumber(state[1]), tonumber(state[2])
if not tokens then
  tokens, refilled = burst, now
end
tokens = math.max(0, math.min(burst, tokens + (now - refilled) / 1000 * rate))
local allowed = 0
if tokens >= 1 then
  tokens, allowed = tokens - 1, 1
end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'lastRefill', now)
redis.call('EXPIRE', KEYS[1], ARGV[4])
local reset = 0
if tokens < burst and rate > 0 then
  reset = math.ceil((burst - tokens) / rate)
end
return {allowed, math.floor(tokens), now + reset * 1000}
