-- KEYS: the map that is being closed, what is known of periods. ARGV: the name of the owner, how much
-- was counted. Answers 1 if it is finished by this owner, now or before; else 0, and nothing changes.
local closing, state = KEYS[1], KEYS[2]
local wrong = want(closing, 'hash') or want(state, 'hash')
if wrong then return wrong end
local call = redis.call
local known = call('HMGET', state, 'owner', 'finished')
if known[2] == ARGV[1] then return 1 end
if known[1] ~= ARGV[1] then return 0 end
-- Without room for this nothing happens; from here on this closing is nobody's but done.
call('HSET', state, 'finished', ARGV[1], 'owner', '', 'lease', '0')
for field, by in pairs({ closed = '1', counted = ARGV[2] }) do
  local done, why = increase(state, field, by)
  if done == nil then return why end
  if not done then call('HSET', state, field, by) end
end
call('UNLINK', closing)
return 1
