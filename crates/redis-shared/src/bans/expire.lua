-- KEYS: the set, the ends of bans. ARGV: where to go on looking for ends without a ban ('' if that is
-- done), how many to look at. Answers whether more are past, where to go on ('' at the end), and whom
-- this has let go.
local set, ends = KEYS[1], KEYS[2]
local wrong = want(set, 'set') or want(ends, 'zset')
if wrong then return wrong end
local call = redis.call
local cursor, count = ARGV[1], tonumber(ARGV[2])
local past = call('ZRANGEBYSCORE', ends, '-inf', whole(milliseconds()), 'LIMIT', 0, count)
local reply = { #past == count and '1' or '0', '' }
for _, member in ipairs(past) do
  if call('SREM', set, member) == 1 then reply[#reply + 1] = member end
  call('ZREM', ends, member)
end
if cursor ~= '' then
  -- Whom somebody has let go by hand: if they are added by hand again, it is without an end.
  local page = call('ZSCAN', ends, cursor, 'COUNT', count)
  for i = 1, #page[2], 2 do
    local member = page[2][i]
    if call('SISMEMBER', set, member) == 0 then call('ZREM', ends, member) end
  end
  if page[1] ~= '0' then reply[2] = page[1] end
end
return reply
