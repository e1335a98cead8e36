-- KEYS: the set, the ends of bans. ARGV: how long in milliseconds, or 'ever'; then members.
-- Answers those that were not in the set.
local set, ends = KEYS[1], KEYS[2]
local wrong = want(set, 'set') or want(ends, 'zset')
if wrong then return wrong end
local call = redis.call
-- One more, for the fraction of a millisecond that is gone already: no ban is shorter than said.
local till = ARGV[1] ~= 'ever' and whole(milliseconds() + 1 + ARGV[1])
local new = {}
for i = 2, #ARGV do
  local member = ARGV[i]
  local is_new = call('SISMEMBER', set, member) == 0
  if not till then
    call('ZREM', ends, member)
  elseif is_new then
    call('ZADD', ends, till, member)
  else
    -- Who is there without an end was added by hand, or for ever, and stays; nobody is let go earlier.
    call('ZADD', ends, 'XX', 'GT', till, member)
  end
  -- After its end is known: if this fails, nobody is banned for ever by mistake.
  if is_new then
    call('SADD', set, member)
    new[#new + 1] = member
  end
end
return new
