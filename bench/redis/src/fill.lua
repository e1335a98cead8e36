-- Fills a stretch of the plain script's key space, so that no measured call finds its key missing.
--
-- ARGV: what keys begin with, first number, last number, tokens, now in ms, seconds to live.
for i = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local key = ARGV[1] .. string.format('%012d', i)
  redis.call('HSET', key, 'tokens', ARGV[4], 'lastRefill', ARGV[5])
  redis.call('EXPIRE', key, ARGV[6])
end
return redis.status_reply('OK')
