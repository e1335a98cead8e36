-- KEYS: the map of the period, the map that is being closed, what is known of periods. ARGV: who
-- asks, under which name it would own this closing, how long a period is, how long it may take.
-- Answers the milliseconds until the period is over, -1 if the closing is its, -2 if it is another's.
local current, closing, state = KEYS[1], KEYS[2], KEYS[3]
local wrong = want(current, 'hash') or want(closing, 'hash') or want(state, 'hash')
if wrong then return wrong end
local call = redis.call
local who, name, period, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now = milliseconds()
local known = call('HMGET', state, 'due', 'owner', 'lease')
local due, owner, leased = tonumber(known[1] or ''), known[2] or '', tonumber(known[3] or '') or 0

if call('EXISTS', closing) == 1 then
  -- Who asks again has lost the answer, or its way: the old name is worth nothing from now on.
  local is_own = string.sub(owner, 1, #who + 1) == who .. '/'
  if leased > now and not is_own then
    -- The clock was set back: nobody waits for longer than a lease.
    if leased > now + lease then call('HSET', state, 'lease', whole(now + lease)) end
    return -2
  end
  call('HSET', state, 'owner', name, 'lease', whole(now + lease))
  return -1
end

-- The first period begins when somebody asks for the first time. An instant further off than a period
-- is from before the clock was set back, or the period was longer then.
if not due or due > now + period then
  due = now + period
  call('HSET', state, 'due', whole(due))
end
if now < due then return due - now end

if call('EXISTS', current) == 0 then
  call('HSET', state, 'due', whole(now + period))
  local done, why = increase(state, 'closed', 1)
  if done == nil then return why end
  if not done then call('HSET', state, 'closed', 1) end
  return period
end
call('HSET', state, 'due', whole(now + period), 'owner', name, 'lease', whole(now + lease))
call('RENAME', current, closing)
return -1
