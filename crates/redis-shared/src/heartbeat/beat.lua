-- Enters us and what we serve, drops those that are gone, counts, and tells who was there, or nothing
-- where we may not read that. All by the server's clock: nobody is told a time, but for how many seconds
-- we have served what we serve.
--
-- KEYS[1]  the sorted set of those that live: NAME, or NAME VERSION PROGRAM SINCE ZONES, by when each was heard
-- ARGV     our name; after how many seconds somebody is gone; 'stay' or 'leave'; VERSION PROGRAM or
--          nothing; for how many seconds that has been so; the most that are read; what we said last, as
--          far as we know; ZONES, the release of our time zones
--
-- An instance of before knows names alone. It counts members, and so each instance is one of them
-- whatever it says: what it said before goes in the same step in which it says something else.
local now = tonumber(redis.call('TIME')[1])
local me, gone, word, serves, last = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[7]
local there = redis.pcall('ZRANGE', KEYS[1], 0, ARGV[6] - 1, 'WITHSCORES')
local said = me
if there.err then
  -- Whoever may not read cannot find what it said before, and says as little as an instance of before.
  there = false
elseif serves ~= '' then
  said = string.format('%s %s %d %s', me, serves, now - ARGV[5], ARGV[8])
end
-- Since when does not change while the rest does not, however the seconds are rounded.
local same = me .. ' ' .. serves .. ' '
local function replace(it)
  if there and serves ~= '' and string.sub(it, 1, #same) == same then said = it end
  redis.call('ZADD', KEYS[1], 0, it)
end
-- Where more are there than are read, we may not be among those: what we know that we said goes anyway.
if last ~= '' then replace(last) end
for i = 1, there and #there or 0, 2 do
  if string.sub(there[i], 1, #me) == me then replace(there[i]) end
end
-- Whoever leaves was last heard of at the beginning of time: that needs no further rights.
if word == 'leave' then
  redis.call('ZADD', KEYS[1], 0, me)
else
  redis.call('ZADD', KEYS[1], now, said)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - gone)
redis.call('PEXPIRE', KEYS[1], 2000 * gone)
return { now, redis.call('ZCARD', KEYS[1]), said, there }
