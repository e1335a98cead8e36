-- Fixed windows of whole seconds as fields of one hash, `start:count`.
--
-- A window that begins between two seconds is written down as beginning with the later one. What was
-- charged before that second began can be given back until it does.
local SECOND = 1000000
-- Fields that each window that opens looks at by chance, to find those whose windows are over; and
-- all together.
local SWEPT, SWEPT_MAX = 8, 64

if has[FIXED] then
  local exact_opening, exact_give_back = opening, give_back_fixed

  -- A block is packed, and begins when it does.
  local function is_whole(q) return q[5] % SECOND == 0 and not q[15] end

  function opening(q)
    local start = exact_opening(q)
    if is_whole(q) then start = start + -start % SECOND end
    return start
  end

  function give_back_fixed(p, q, units, at)
    local start = s1[p]
    if is_whole(q) and now < start and at > start - SECOND then at = start end
    exact_give_back(p, q, units, at)
  end
end

local function window(value)
  local start, used = match(value, '^(%d+):(%d+)$')
  if not start or #start > 16 or #used > 16 then return nil end
  start, used = tonumber(start) * SECOND, tonumber(used)
  if start <= END and used <= END then return start, used end
end

fetch[WINDOW] = function(k)
  return read('HGET', KEYS[k], field_of[k])
end

enter_form[WINDOW] = function(p, q, value)
  local start, used = window(value)
  if not start then return false end
  enter_fixed(p, q, start, used)
  return true
end

-- The hashes that were written to: 1 how many fields, 2 the end of the latest window, 3 the period, 4
-- how many windows opened.
local hashes = {}

write[WINDOW] = function(p, q, k)
  local fresh, start, used = leave(p, q)
  if fresh <= now then return false end
  local name = KEYS[k]
  call('HSET', name, field_of[k], format('%.0f:%.0f', start / SECOND, used))
  local hash = hashes[name]
  if not hash then
    hash = {0, 0, q[5], 0}
    hashes[name] = hash
  end
  hash[1] = hash[1] + 1
  if fresh > hash[2] then hash[2] = fresh end
  if not reply[k + 2] or window(reply[k + 2]) ~= start then hash[4] = hash[4] + 1 end
  return true
end

-- Keeps a hash until its latest window ends, and never shorter than it is kept already.
local function keep_hash(name, hash)
  local fresh, left = hash[2], call('PTTL', name)
  if left == -1 and call('HLEN', name) > hash[1] then
    -- The other system's, which lets nothing expire: any of its windows may be the latest.
    local latest = now + -now % SECOND + hash[3]
    if latest > fresh then fresh = latest end
  end
  local how, ms = @EXPIRE:fresh@
  local wanted = ms
  if how == 'PXAT' then wanted = ms - (now - now % 1000) / 1000 end
  if left < wanted then expire(name, fresh) end
end

-- Removes a few fields whose windows are over. All windows in a hash are of one limit's period.
local function sweep(name, hash)
  local looked_at = hash[4] * SWEPT
  if looked_at == 0 then return end
  if looked_at > SWEPT_MAX then looked_at = SWEPT_MAX end
  local fields, over = call('HRANDFIELD', name, looked_at, 'WITHVALUES'), {}
  for i = 1, #fields, 2 do
    local start = window(fields[i + 1])
    if start and start + hash[3] <= now then insert(over, fields[i]) end
  end
  call_each('HDEL', name, over)
end

local function finish_hashes()
  for name, hash in next, hashes do
    keep_hash(name, hash)
    sweep(name, hash)
  end
end
