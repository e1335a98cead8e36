-- Short names: a global is looked up by name at every use, a local is not.
local call, try = redis.call, redis.pcall
local unpack, pack = struct.unpack, struct.pack
local byte, sub, rep, find = string.byte, string.sub, string.rep, string.find
local concat = table.concat

-- The one instant at which everything in this call happens.
local now = call('TIME')
now = now[1] * 1000000 + now[2]

-- 2^53. Integers below it are exact. It is written where there is no number, and for an instant that
-- is later (the year 2255).
local END = 9007199254740992

-- The usual call, without a single function, for making one costs as much as using it: token buckets
-- and fixed windows that nothing is given back to, enforced takes, each from all the bands that are
-- asked for under its keys. Does what the rest of the script does, with a program of its own:
--
--   I2 0  I2 classes  I2 shapes  I2 runs
--   class:     B length, then for each band  B kind  I6 id  I7 full  I7 pace  I7 more
--   keys:      I2 class for each key, unless there is one class alone
--   shape:     B keys, then for each key  B length, and I7 units for each band
--   run:       as in the general program
--
-- What `full`, `pace` and `more` mean is told there too. Values are described in `packed.lua`.
if sub(ARGV[1], 1, 2) == '\0\0' then
  local program = ARGV[1]
  local _, class_count, shape_count, run_count, pos = unpack('<I2I2I2I2', program)

  -- A band: 1 id, 2 full, 3 drain or period, 4 ahead_max or aligned, 5 whether it is a window.
  local classes = {}
  for c = 1, class_count do
    local class, n = {}
    n, pos = unpack('<B', program, pos)
    for i = 1, n do
      local kind, id, full, pace, more
      kind, id, full, pace, more, pos = unpack('<BI6I7I7I7', program, pos)
      class[i] = {id, full, pace, more, kind == 3}
    end
    classes[c] = class
  end
  local key_count, class_pos = #KEYS, pos
  if class_count > 1 then pos = pos + key_count * 2 end

  -- 1. Read every key. `bases` is false where a value is not ours.
  local reply, bases, room, starts, place = {now, ''}, {}, {}, {}, 0
  -- Of keys that need more than the usual: live records of other bands and when they are fresh, the
  -- value as it was, the places that were settled, and records that remember more than we need.
  local others, others_fresh, settled, settled_at, wide = {}, {}, {}, {}, {}
  local class = classes[1]
  for k = 1, key_count do
    if class_count > 1 then
      class = classes[unpack('<I2', program, class_pos + k * 2 - 2) + 1]
    end
    local n, value = #class, try('GET', KEYS[k])
    reply[k + 2], bases[k] = value, place
    local from, at, i = value, 2, 1
    local fits = not value or #value == 1 + 30 * n and byte(value) == 1
    while i <= n do
      if not fits then
        -- Bring the bands' records into order and put the others aside.
        fits, at, i = true, 2, 1
        if type(value) == 'table' then
          if not find(value.err, 'WRONGTYPE', 1, true) then return value end
          reply[k + 2], bases[k] = 0, false
          break
        end
        local size, records, rest, last = #value, {}, {}, 0
        if byte(value) ~= 1 then bases[k] = false break end
        local p = 2
        while p <= size do
          if p + 15 > size then bases[k] = false break end
          local fresh, id, length = unpack('<I7I6I3', value, p)
          local to = p + 15 + length
          if to > size then bases[k] = false break end
          local mine
          for j = 1, n do
            if class[j][1] == id then mine = j end
          end
          if not mine then
            if fresh > now then
              rest[#rest + 1] = sub(value, p, to)
              if fresh > last then last = fresh end
            end
          elseif not records[mine] then
            if length ~= 14 and (class[mine][5] or
                length ~= 35 and (length < 28 or length > 140 or length % 14 ~= 0)) then
              bases[k] = false
              break
            end
            records[mine] = sub(value, p, p + 12) .. '\14\0\0' .. sub(value, p + 16, p + 29)
            if length > 14 then wide[place + mine] = sub(value, p, to) end
          end
          p = to + 1
        end
        if not bases[k] then break end
        for j = 1, n do
          records[j] = records[j] or pack('<I7I6I3I7I7', 0, class[j][1], 14, 0, 0)
        end
        from = '\1' .. concat(records)
        if last > 0 then others[k], others_fresh[k] = concat(rest), last end
      end
      local band, p = class[i], place + i
      local fresh, id, length, a, b = 0
      if from then
        fresh, id, length, a, b, at = unpack('<I7I6I3I7I7', from, at)
        fits = id == band[1] and length == 14
      end
      if fits then
        i = i + 1
        if band[5] then
          if fresh <= now or b == 0 or now >= a + band[3] then
            if band[4] == 1 then a = now - now % band[3] else a = now end
            room[p], starts[p] = band[2], a
          elseif a > now + band[3] then
            -- Further ahead than this quota can have brought it: full as of now.
            if band[4] == 1 then a = now - now % band[3] else a = now end
            if b < band[2] then b = band[2] end
            room[p], starts[p], settled[k], settled_at[p] = band[2] - b, a, from, true
          else
            room[p], starts[p] = band[2] - b, a
          end
        elseif fresh <= now or a < now then
          room[p] = band[2]
        elseif a - now > band[4] then
          room[p], settled[k], settled_at[p] = 0, from, true
        else
          -- A fraction may have been left by a quota with a larger drain.
          if b >= band[3] then b = band[3] - 1 end
          room[p] = band[2] - (a - now) * band[3] - b
        end
      end
    end
    place = place + n
  end

  -- 2. Decide every request in order.
  local shapes = {}
  for s = 1, shape_count do
    local keys, m = nil, 0
    keys, pos = unpack('<B', program, pos)
    local sizes, units = {}, {}
    for j = 1, keys do
      local n
      n, pos = unpack('<B', program, pos)
      sizes[j] = n
      for _ = 1, n do
        m = m + 1
        units[m], pos = unpack('<I7', program, pos)
      end
    end
    shapes[s] = {keys, sizes, units}
  end
  local taken, marks, at_key, at_base = {}, {}, {}, {}
  local mark = 0
  for _ = 1, run_count do
    local s, repeated, count
    s, repeated, count, pos = unpack('<I2BI2', program, pos)
    local shape = shapes[s]
    local keys, sizes, units = shape[1], shape[2], shape[3]
    local times = 1
    if repeated == 1 then count, times = 1, count end
    for _ = 1, count do
      local fits, u = times, 0
      for j = 1, keys do
        local low, high = byte(program, pos, pos + 1)
        local k = low + high * 256 + 1
        pos = pos + 2
        local base = bases[k]
        at_key[j], at_base[j] = k, base
        if not base then
          fits = -1
        elseif fits > 0 then
          for i = base + 1, base + sizes[j] do
            u = u + 1
            local left, need = room[i], units[u]
            if need > left then
              fits = 0
              break
            elseif times > 1 then
              left = (left - left % need) / need
              if left < fits then fits = left end
            end
          end
        end
      end
      if fits > 0 then
        u = 0
        for j = 1, keys do
          local base = at_base[j]
          taken[at_key[j]] = true
          for i = base + 1, base + sizes[j] do
            u = u + 1
            room[i] = room[i] - fits * units[u]
          end
        end
      end
      mark = mark + 1
      if fits < 0 then
        marks[mark] = rep('x', times)
      elseif times == 1 then
        marks[mark] = fits == 1 and '1' or '0'
      else
        marks[mark] = rep('1', fits) .. rep('0', times - fits)
      end
    end
  end
  reply[2] = concat(marks)

  -- 3. Write what was taken from, and what was settled.
  local fresh_of, a_of, b_of = {}, {}, {}
  local gone
  for k = 1, key_count do
    if class_count > 1 then
      class = classes[unpack('<I2', program, class_pos + k * 2 - 2) + 1]
    end
    local base, all = bases[k], taken[k]
    if base and (all or settled[k]) then
      local n, last = #class, others_fresh[k] or 0
      for i = 1, n do
        local band, p = class[i], base + i
        local used, fresh = band[2] - room[p]
        if band[5] then
          fresh = starts[p] + band[3]
          if used == 0 then fresh = 0 end
          a_of[i], b_of[i] = starts[p], used
        else
          local b = used % band[3]
          fresh = now + (used - b) / band[3]
          a_of[i], b_of[i] = fresh, b
          if b > 0 then fresh = fresh + 1 end
        end
        if fresh > END then fresh = END end
        if not all and not settled_at[p] then
          fresh, _, _, a_of[i], b_of[i] = unpack('<I7I6I3I7I7', settled[k], i * 30 - 28)
        end
        fresh_of[i] = fresh
        if fresh > last then last = fresh end
      end
      local value
      if all and n == 1 then
        value = pack('<BI7I6I3I7I7', 1, fresh_of[1], class[1][1], 14, a_of[1], b_of[1])
      elseif all and n == 2 then
        value = pack('<BI7I6I3I7I7I7I6I3I7I7', 1,
          fresh_of[1], class[1][1], 14, a_of[1], b_of[1],
          fresh_of[2], class[2][1], 14, a_of[2], b_of[2])
      elseif all and n == 3 then
        value = pack('<BI7I6I3I7I7I7I6I3I7I7I7I6I3I7I7', 1,
          fresh_of[1], class[1][1], 14, a_of[1], b_of[1],
          fresh_of[2], class[2][1], 14, a_of[2], b_of[2],
          fresh_of[3], class[3][1], 14, a_of[3], b_of[3])
      else
        value = '\1'
        for i = 1, n do
          local kept = not all and not settled_at[base + i] and wide[base + i]
          if fresh_of[i] > now then
            value = value ..
              (kept or pack('<I7I6I3I7I7', fresh_of[i], class[i][1], 14, a_of[i], b_of[i]))
          end
        end
      end
      if others[k] then value = value .. others[k] end
      if last > now then
        call('SET', KEYS[k], value, 'PXAT', string.format('%d', math.max((last - last % 1000) / 1000, (now - now % 1000) / 1000 + 1)))
      else
        gone = gone or {}
        gone[#gone + 1] = KEYS[k]
      end
    end
  end
  if gone then
    for i = 1, #gone do call('DEL', gone[i]) end
  end
  return reply
end

-- The program: everything but the keys, in one string.
--
--   I2 quotas  I2 classes  I2 shapes  I2 runs
--   quota:     B kind  I6 id  I7 full  I7 over  I7 pace  I7 more  I7 tick
--   class:     I2 length, then I2 quota for each            the places of a key
--   keys:      I2 class for each key, unless there is one class alone
--   shape:     I2 keys  B simple  I2 asks, then for each ask
--              B key  B operation  I2 offset  I2 quota  I3 shadow  I7 need  I7 units  I7 at
--              and, where it gives back, I7 until  I7 mark  I7 behind; in its turn, I7 by
--   run:       I2 shape  B repeated  I2 count, then I2 for each key: of each request, or once if repeated
--
-- Quotas, shapes and offsets are counted from 1, keys and their classes from 0. A *place* is a
-- bucket: one quota under one key; the places of a key lie side by side in its class's order.
local program = ARGV[1]
local quota_count, class_count, shape_count, run_count, pos = unpack('<I2I2I2I2', program)

-- Kinds of quotas. A plain token bucket remembers nothing for giving back. One that lends is one that
-- is refundable, and remembers more.
local TOKENS, TOKENS_REFUNDABLE, FIXED, SLIDING, LOG, TOKENS_LENT = 1, 2, 3, 4, 5, 6

-- A quota: 1 kind, 2 id, 3 full (the room of a bucket as good as new), 4 over (how far below empty a
-- forced charge may go), 5 drain or period, 6 ahead_max, aligned or part, 7 tick, 8 the most room
-- that a charge can begin with, 9 the present tick; 14 whether it lends.
--
-- Room is counted in what a charge takes: units of debt for a token bucket, units of cost else.
local quotas = {}
-- Which kinds there are: what the others need is not even made.
local has = {false, false, false, false, false}
local has_lent = false
for i = 1, quota_count do
  local kind, id, full, over, pace, more, tick
  kind, id, full, over, pace, more, tick, pos = unpack('<I1I6I7I7I7I7I7', program, pos)
  local lends = kind == TOKENS_LENT
  if lends then kind, has_lent = TOKENS_REFUNDABLE, true end
  local most, present = full, now
  if tick > 1 then
    local past = now % tick
    present = (now - past) / tick
    -- Between two ticks, a debt is read at the one before and begun at the one after.
    if past > 0 and kind <= TOKENS_REFUNDABLE then most = full - pace end
  end
  has[kind] = true
  quotas[i] = {kind, id, full, over, pace, more, tick, most, present}
  if lends then quotas[i][14] = true end
end

-- Classes: the quotas under a key.
local classes = {}
for c = 1, class_count do
  local class, n = {}
  n, pos = unpack('<I2', program, pos)
  for i = 1, n do
    local q
    q, pos = unpack('<I2', program, pos)
    class[i] = quotas[q]
  end
  classes[c] = class
end

local key_count = #KEYS
local class_pos = pos
if class_count > 1 then pos = pos + key_count * 2 end

local function class_of(k)
  if class_count == 1 then return 1 end
  local low, high = byte(program, class_pos + k * 2 - 2, class_pos + k * 2 - 1)
  return low + high * 256 + 1
end

-- An ask: 1 key, 2 operation, 3 offset, 4 quota, 5 shadow (0, or 1 more than the limit), 6 need (the
-- room that must be there; 0 asks nothing), 7 units to take, 8 when they were taken, or what a limit
-- with a block is known by (0 where a refusal charges none), 9 what else a receipt says: until when they were owed, what had been credited then, what of it lies behind; and
-- until when they come back, where they do so in their turn and not in any case.
local LOOK, TAKE, FORCE, GIVE_BACK, DROP, SWITCH, RETURN, BLOCK = 0, 1, 2, 3, 4, 5, 6, 7

local shapes = {}
local has_switch = false
for s = 1, shape_count do
  local keys, simple, asks
  keys, simple, asks, pos = unpack('<I2BI2', program, pos)
  local shape = {}
  for i = 1, asks do
    local key, op, offset, q, shadow, need, units, at
    key, op, offset, q, shadow, need, units, at, pos = unpack('<BBI2I2I3I7I7I7', program, pos)
    if op == SWITCH then has_switch = true end
    local receipt
    if op == GIVE_BACK then
      local till, mark, behind
      till, mark, behind, pos = unpack('<I7I7I7', program, pos)
      receipt = {till, mark, behind}
    elseif op == RETURN then
      local till, mark, behind, by
      till, mark, behind, by, pos = unpack('<I7I7I7I7', program, pos)
      receipt = {till, mark, behind, by}
    end
    shape[i] = {key + 1, op, offset, quotas[q], shadow, need, units, at, receipt}
  end
  shapes[s] = {keys, simple == 1, shape}
end

-- The state of places, by their numbers.
--
-- Everything in a call happens at one instant, so that a charge is the same for all algorithms: it
-- takes from the room that is left. What else a state has is worked out once, when the place is
-- entered and when it is left.
local room = {}
-- Whether anything has been done to it, so that it has to be written.
local touched = {}
-- What else there is to a state:
--   refundable token bucket: since when credits are counted, their sum; if it lends, how low its debt
--   has been     fixed window: start
--   sliding window: index, count, count of the last window, and the room that there was at first
--   log: a string with runs, their units, the units of those that are over, how many those are, and
--   the room at first; where in the string the runs begin and end
local s1, s2, s3, s4, s5, s6, room0 = {}, {}, {}, {}, {}, {}, {}

-- Token bucket: room is the brim less the debt at the present tick.

-- Counts what the debt fell by otherwise than by the clock, in ticks.
local function count_credit(p, ticks)
  local sum = s2[p] + ticks
  if sum >= END then sum = END - 1 end
  s2[p] = sum
end

local function enter_tokens(p, q, at, fraction)
  local ahead, drain = at - q[9], q[5]
  if ahead < 0 then
    room[p] = q[3]
  elseif ahead > q[6] then
    -- Further ahead than this quota can have brought it: empty as of now.
    room[p], touched[p] = 0, true
    if q[1] == TOKENS_REFUNDABLE then
      count_credit(p, at - q[9] - (q[3] - q[3] % drain) / drain + 1)
    end
  else
    -- A fraction may have been left by a quota with a larger drain.
    if fraction >= drain then fraction = drain - 1 end
    room[p] = q[3] - ahead * drain - fraction
  end
end

-- When it is fresh, the whole tick before the debt is paid off, and what is left then.
local function leave_tokens(p, q)
  local debt, drain = q[3] - room[p], q[5]
  local fraction = debt % drain
  local at = q[9] + (debt - fraction) / drain
  local fresh = at
  if fraction > 0 then fresh = at + 1 end
  if q[7] > 1 then fresh = fresh * q[7] end
  if fresh > END then fresh = END end
  return fresh, at, fraction
end

-- A count of credits begins again where there is no debt, and before it gets too large.
local function renew_credits(p, debt)
  if debt == 0 or s2[p] > END / 2 then
    if now > s1[p] then s1[p] = now end
    s2[p] = 0
  end
end

-- The lowest that the debt can have been from a charge to the tick `present`; 0 where nothing is known.
local function lowest(p, q, present, at, receipt)
  if q[1] ~= TOKENS_REFUNDABLE or receipt[2] > s2[p] then return 0 end
  local under = s2[p] - receipt[2] - receipt[3]
  if under < 0 then under = 0 end
  local due = (receipt[1] - receipt[1] % q[7]) / q[7] - present - under
  if due < 1 then return 0 end
  return (due - 1) * q[5] + 1
end

-- Credits at most the debt that is there only because of the charge; see core.
local function give_back_tokens(p, q, charge, at, receipt)
  -- What was charged before the count began has been paid off.
  if q[1] == TOKENS_REFUNDABLE and at < s1[p] then return end
  local most, drain, tick = q[8], q[5], q[7]
  local begin, present = room[p], q[9]
  if begin > most then begin = most end
  if most < q[3] then present = present + 1 end
  local debt = most - begin
  local elapsed = present - (at - at % tick) / tick
  if elapsed < 0 then elapsed = 0 end
  local credit, low = charge, lowest(p, q, present, at, receipt)
  if low < credit then credit = low end
  if charge - elapsed * drain > credit then credit = charge - elapsed * drain end
  if debt < credit then credit = debt end
  if credit > 0 then
    room[p] = begin + credit
    if q[1] == TOKENS_REFUNDABLE then count_credit(p, (credit + -credit % drain) / drain) end
  end
end

-- Fixed window: room is the amount less the count; beside it, when the window began.
local opening, enter_fixed, leave_fixed, give_back_fixed

if has[FIXED] then
  function opening(q)
    if q[6] == 1 then return now - now % q[5] end
    return now
  end

  function enter_fixed(p, q, start, used)
    if used > 0 and start > now + q[5] then
      -- Further ahead than this quota can have brought it: full as of now.
      start, touched[p] = opening(q), true
      if used < q[3] then used = q[3] end
    elseif used == 0 or now >= start + q[5] then
      start, used = opening(q), 0
    end
    room[p], s1[p] = q[3] - used, start
  end

  function leave_fixed(p, q)
    local used, fresh = q[3] - room[p], s1[p] + q[5]
    if used == 0 then fresh = 0 end
    if fresh > END then fresh = END end
    return fresh, s1[p], used
  end

  -- Only where the window that was charged is still open.
  function give_back_fixed(p, q, units, at)
    local used = q[3] - room[p]
    if used > 0 and at >= s1[p] then
      used = used - units
      -- Without a count there is no window; the next charge opens one.
      if used <= 0 then used, s1[p] = 0, opening(q) end
      room[p] = q[3] - used
    end
  end
end

-- Sliding window: this window's count, and the share of the last one that still overlaps. Beside the
-- room: the window's index, its count at first, the last one's count, and the room at first.
local window_of, enter_sliding, counted, leave_sliding, give_back_sliding

if has[SLIDING] then
  function window_of(q)
    local present, period = q[9], q[5]
    return (present - present % period) / period
  end

  local function set_sliding(p, q, index, current, previous)
    local period = q[5]
    local left = period
    -- Where the clock has gone back, the stored window is taken to have just begun.
    if index == window_of(q) then left = period - q[9] % period end
    local before = previous * left
    local share = (before + -before % period) / period
    local left_over = q[3] - current - share
    room[p], room0[p] = left_over, left_over
    s1[p], s2[p], s3[p] = index, current, previous
  end

  function enter_sliding(p, q, index, current, previous)
    local present = window_of(q)
    local counts = current > 0 or previous > 0
    if not counts then
      index = present
    elseif index > present + 1 then
      -- Further ahead than this quota can have brought it: both windows full.
      index, current, previous, touched[p] = present, q[3], q[3], true
    elseif present == index + 1 then
      index, current, previous = present, 0, current
    elseif present > index then
      index, current, previous = present, 0, 0
    end
    set_sliding(p, q, index, current, previous)
  end

  function counted(p)
    return s2[p] + room0[p] - room[p]
  end

  function leave_sliding(p, q)
    local current, previous = counted(p), s3[p]
    local last = s1[p]
    if current > 0 then last = last + 2 elseif previous > 0 then last = last + 1 end
    local fresh = last * q[5] * q[7]
    if last == s1[p] then fresh = 0 end
    if fresh > END then fresh = END end
    return fresh, s1[p], current, previous
  end

  -- From whichever of the two windows was charged.
  function give_back_sliding(p, q, units, at)
    local tick = (at - at % q[7]) / q[7]
    local later = s1[p] - (tick - tick % q[5]) / q[5]
    local current, previous = counted(p), s3[p]
    if later <= 0 then
      current = current - units
      if current < 0 then current = 0 end
    elseif later == 1 then
      previous = previous - units
      if previous < 0 then previous = 0 end
    end
    set_sliding(p, q, s1[p], current, previous)
  end
end

-- Sliding log and bucketed window: what was taken, and when. It stays a string of runs (I7 stamp, I7
-- units), oldest first, of which only those that are over, the last one and the one that something is
-- given back to are ever read. Making a long string is what costs most here, so none is made before
-- it is needed.
local enter_log, clear_log, leave_log, log_parts, give_back_log

if has[LOG] then
  local function stamp_of(q, at)
    local part = q[6]
    if part == 0 then return at end
    return at - at % part + part
  end

  local function set_log(p, q, runs, units, from, to)
    local period, pos, over, over_units = q[5], from, 0, 0
    while pos < to do
      local stamp, taken
      stamp, taken, pos = unpack('<I7I7', runs, pos)
      if stamp + period > now then break end
      over, over_units = over + 1, over_units + taken
    end
    local left = q[3] - units + over_units
    room[p], room0[p] = left, left
    s1[p], s2[p], s3[p], s4[p], s5[p], s6[p] = runs, units, over_units, over, from, to
  end

  -- Fills a place from the runs from `from` to `to` in a string; all of it unless told.
  function enter_log(p, q, runs, units, from, to)
    from, to = from or 1, to or #runs
    local ceiling = stamp_of(q, now)
    if to > from and unpack('<I7', runs, to - 13) > ceiling + q[5] then
      -- Further ahead than this quota can have brought it: as if taken now.
      local later = 0
      while to > from do
        local stamp, taken = unpack('<I7I7', runs, to - 13)
        if stamp < ceiling then break end
        to, later = to - 14, later + taken
      end
      runs = sub(runs, from, to) .. pack('<I7I7', ceiling, later)
      from, to, touched[p] = 1, #runs, true
    end
    set_log(p, q, runs, units, from, to)
  end

  function clear_log(p, q)
    set_log(p, q, '', 0, 1, 0)
  end

  -- When it is fresh; all runs but perhaps the last, that one, and the units of all.
  function log_parts(p, q)
    local runs, from, to = s1[p], s5[p], s6[p]
    local taken = room0[p] - room[p]
    local last, last_units = 0, 0
    if to > from then last, last_units = unpack('<I7I7', runs, to - 13) end
    local units, tail = s2[p], ''
    if taken ~= 0 then
      from, units = from + s4[p] * 14, units - s3[p] + taken
      local stamp = stamp_of(q, now)
      if to > from and last >= stamp then
        -- Stamps never fall, even if the clock does.
        to = to - 14
        tail = pack('<I7I7', last, last_units + taken)
      else
        last, tail = stamp, pack('<I7I7', stamp, taken)
      end
    end
    local fresh = 0
    if units > 0 then fresh = last + q[5] end
    if fresh > END then fresh = END end
    return fresh, sub(runs, from, to), tail, units
  end

  -- When it is fresh, the runs, and their units.
  function leave_log(p, q)
    local fresh, runs, tail, units = log_parts(p, q)
    return fresh, runs .. tail, units
  end

  -- The runs without `units` of the newest that still count, and how many are left of `all`.
  local function take_off(q, runs, all, units)
    local to = #runs
    while units > 0 and to > 0 do
      local stamp, taken = unpack('<I7I7', runs, to - 13)
      if stamp + q[5] <= now then break end
      to = to - 14
      if taken > units then
        return sub(runs, 1, to) .. pack('<I7I7', stamp, taken - units), all - units
      end
      units, all = units - taken, all - taken
    end
    return sub(runs, 1, to), all
  end

  -- Exactly: the units carry their stamp. Who does not know when gives back what was taken last.
  function give_back_log(p, q, units, at)
    local _, runs, all = leave_log(p, q)
    if at >= END - 1 then
      runs, all = take_off(q, runs, all, units)
      set_log(p, q, runs, all, 1, #runs)
      return
    end
    local wanted, low, high = stamp_of(q, at), 1, #runs / 14
    while low <= high do
      local middle = (low + high - (low + high) % 2) / 2
      local stamp, taken = unpack('<I7I7', runs, middle * 14 - 13)
      if stamp < wanted then
        low = middle + 1
      elseif stamp > wanted then
        high = middle - 1
      else
        if units > taken then units = taken end
        local left = ''
        if units < taken then left = pack('<I7I7', stamp, taken - units) end
        runs = sub(runs, 1, middle * 14 - 14) .. left .. sub(runs, middle * 14 + 1)
        all = all - units
        break
      end
    end
    set_log(p, q, runs, all, 1, #runs)
  end
end

-- What can be done to a place, whatever its kind.

-- As good as new.
local function clear(p, q)
  local kind = q[1]
  room[p] = q[3]
  if kind == TOKENS_REFUNDABLE then
    s1[p], s2[p] = 0, 0
  elseif kind == FIXED then
    s1[p] = opening(q)
  elseif kind == SLIDING then
    room0[p] = q[3]
    s1[p], s2[p], s3[p] = window_of(q), 0, 0
  elseif kind == LOG then
    clear_log(p, q)
  end
end

local function charge(p, q, units)
  local begin = room[p]
  if begin > q[8] then begin = q[8] end
  if q[1] == TOKENS_REFUNDABLE then renew_credits(p, q[8] - begin) end
  room[p] = begin - units
  touched[p] = true
end

-- Takes what there is down to the overdraft, and no more.
local function force(p, q, units)
  local most
  if q[1] == SLIDING then
    most = q[3] + q[4] - counted(p)
  else
    local begin = room[p]
    if begin > q[8] then begin = q[8] end
    most = begin + q[4] + (q[3] - q[8])
  end
  if units > most then units = most end
  if units > 0 then charge(p, q, units) else touched[p] = true end
end

local function give_back(p, q, units, at, receipt)
  local kind = q[1]
  touched[p] = true
  if kind <= TOKENS_REFUNDABLE then
    give_back_tokens(p, q, units, at, receipt)
  elseif kind == FIXED then
    give_back_fixed(p, q, units, at)
  elseif kind == SLIDING then
    give_back_sliding(p, q, units, at)
  else
    give_back_log(p, q, units, at)
  end
end

-- From when on it is as good as new, and the numbers to keep (or a log's runs and units).
local function leave(p, q)
  local kind = q[1]
  if kind <= TOKENS_REFUNDABLE then return leave_tokens(p, q) end
  if kind == FIXED then return leave_fixed(p, q) end
  if kind == SLIDING then return leave_sliding(p, q) end
  return leave_log(p, q)
end

-- Token buckets that units are lent from: how low their debt has been; see core's `lent`. What a bucket
-- does that does not lend stays as it is.
--
-- The lows of a place are a list of instants and debts in whole ticks, in turn, both rising.
local LOWS_MAX = 8
local enter_lows, pack_lows

-- Nothing is known of the time before: there may have been no debt.
local function unknown_lows(p, q)
  if q[14] then s3[p] = {now, 0} end
end

if has_lent then
  -- Writes down the debt just before a charge.
  local function note(lows, at, ticks)
    local n = #lows
    while n > 0 and lows[n] >= ticks do
      lows[n], lows[n - 1] = nil, nil
      n = n - 2
    end
    -- At one instant the first is the lowest.
    if n > 0 and lows[n - 1] >= at then return end
    lows[n + 1], lows[n + 2] = at, ticks
    if n < LOWS_MAX * 2 then return end
    -- One too many: the two neighbours that differ least become one.
    local first, least = 2, lows[4] - lows[2]
    for i = 4, n, 2 do
      local apart = lows[i + 2] - lows[i]
      if apart < least then first, least = i, apart end
    end
    lows[first - 1] = lows[first + 1]
    for i = first + 1, n do lows[i] = lows[i + 2] end
    lows[n + 1], lows[n + 2] = nil, nil
  end

  -- A credit for a charge at `at`: without it, all debts since would have been lower by as much.
  local function lower(lows, at, ticks)
    local lowered = {}
    for i = 1, #lows, 2 do
      local debt = lows[i + 1]
      if lows[i] > at then
        debt = debt - ticks
        if debt < 0 then debt = 0 end
      end
      note(lowered, lows[i], debt)
    end
    return lowered
  end

  local clear_any, charge_any, enter_any = clear, charge, enter_tokens
  local lowest_any, give_back_any = lowest, give_back_tokens

  function clear(p, q)
    if q[14] then s3[p] = {} end
    clear_any(p, q)
  end

  function charge(p, q, units)
    if q[14] then
      local debt = q[8] - room[p]
      if debt < 0 then debt = 0 end
      note(s3[p], now, (debt - debt % q[5]) / q[5])
    end
    charge_any(p, q, units)
  end

  function enter_tokens(p, q, at, fraction)
    -- Further ahead than this quota can have brought it.
    if at - q[9] > q[6] then unknown_lows(p, q) end
    enter_any(p, q, at, fraction)
  end

  function lowest(p, q, present, at, receipt)
    local low = lowest_any(p, q, present, at, receipt)
    if not q[14] then return low end
    local lows = s3[p]
    for i = 1, #lows, 2 do
      if lows[i] > at then
        local debt = lows[i + 1] * q[5]
        if debt > low then low = debt end
        return low
      end
    end
    -- Nobody has charged since: the lowest is the debt of now.
    return END
  end

  function give_back_tokens(p, q, units, at, receipt)
    local before = room[p]
    give_back_any(p, q, units, at, receipt)
    if q[14] and room[p] ~= before then
      local credit = room[p] - before
      s3[p] = lower(s3[p], at, (credit + -credit % q[5]) / q[5])
    end
  end

  -- Fills a place's lows from a payload of that length.
  function enter_lows(p, value, pos, length)
    local lows = {}
    for at = pos + 28, pos + length - 1, 14 do
      local n = #lows
      lows[n + 1], lows[n + 2] = unpack('<I7I7', value, at)
    end
    if #lows == 0 then lows = {now, 0} end
    s3[p] = lows
  end

  -- A place's lows as they stand in a record.
  function pack_lows(p)
    local lows, packed = s3[p], {}
    for i = 1, #lows, 2 do packed[#packed + 1] = pack('<I7I7', lows[i], lows[i + 1]) end
    return concat(packed)
  end
end

-- The packed layout: one string per key, a version and then a record for each band.
--
--   B version = 1, then records: I7 fresh  I6 id  I3 length, then the payload of that length
--   token bucket: I7 at  I7 fraction; if refundable, I7 since  I7 credited too; if it lends, then up
--                 to eight lows, earliest first: I7 instant  I7 ticks
--   fixed window: I7 start  I7 used                sliding window: I7 index  I7 current  I7 previous
--   log:          I7 units, then runs, oldest first: I7 stamp  I7 units
--
-- A record that is fresh by now counts as absent. One that is not in the key's class, or not touched,
-- stays as it is.

-- Fills a place from a payload; false if the payload cannot be one of this kind.
local function enter(p, q, value, pos, length, is_fresh)
  local kind = q[1]
  if kind == SLIDING then
    if length ~= 21 then return false end
  elseif kind == LOG then
    if length % 14 ~= 7 then return false end
  elseif length ~= 14 and (kind == FIXED or
      length ~= 35 and (length < 28 or length > 140 or length % 14 ~= 0)) then
    return false
  end
  if is_fresh then
    clear(p, q)
  elseif kind == TOKENS then
    enter_tokens(p, q, unpack('<I7I7', value, pos))
  elseif kind == TOKENS_REFUNDABLE then
    local at, fraction
    if length == 28 or length > 35 then
      at, fraction, s1[p], s2[p] = unpack('<I7I7I7I7', value, pos)
    else
      at, fraction = unpack('<I7I7', value, pos)
      -- What was credited before is not known. (Earlier versions kept three other numbers here.)
      s1[p], s2[p], length = now, 0, 28
    end
    if q[14] then enter_lows(p, value, pos, length) end
    enter_tokens(p, q, at, fraction)
  elseif kind == FIXED then
    enter_fixed(p, q, unpack('<I7I7', value, pos))
  elseif kind == SLIDING then
    enter_sliding(p, q, unpack('<I7I7I7', value, pos))
  else
    local units = unpack('<I7', value, pos)
    enter_log(p, q, value, units, pos + 7, pos + length - 1)
  end
  return true
end

-- Fills the places of a key from its value; false if the value is not ours.
local function enter_all(value, class, base)
  if byte(value) ~= 1 then return false end
  local pos, size, n, seen = 2, #value, #class, {}
  while pos <= size do
    if pos + 15 > size then return false end
    local fresh, id, length = unpack('<I7I6I3', value, pos)
    pos = pos + 16
    if pos + length - 1 > size then return false end
    for i = 1, n do
      if class[i][2] == id and not seen[i] then
        seen[i] = true
        if not enter(base + i, class[i], value, pos, length, fresh <= now) then return false end
      end
    end
    pos = pos + length
  end
  for i = 1, n do
    if not seen[i] then clear(base + i, class[i]) end
  end
  return true
end

-- The first place of each key, less 1; false where the key's value is not ours.
local bases = {}
local reply = {now, ''}
local next_place = 0

-- Reads a key and fills its places. Tells an error that is not about this key alone.
local function load(k)
  local class = classes[class_of(k)]
  local base = next_place
  next_place = base + #class
  local value = try('GET', KEYS[k])
  reply[k + 2], bases[k] = value, base
  if not value then
    for i = 1, #class do clear(base + i, class[i]) end
  elseif type(value) == 'table' then
    if not find(value.err, 'WRONGTYPE', 1, true) then return value end
    reply[k + 2], bases[k] = 0, false
  elseif not enter_all(value, class, base) then
    bases[k] = false
  end
end

-- Places that are asked for under several quotas in one call, as happens when a policy changes: the
-- quota at last, and what was written under the ones before.
local switched, written

-- Appends a touched place as a record to `parts`, which has `count`, unless it is as good as new; tells
-- how many there are then, and when it is fresh.
local function push(parts, count, p, q)
  if touched[p] == false then
    local value = written[p]
    if value == '' then return count, 0 end
    parts[count + 1] = value
    return count + 1, (unpack('<I7', value))
  end
  local kind = q[1]
  if kind == LOG then
    local fresh, runs, tail, units = log_parts(p, q)
    if fresh <= now then return count, 0 end
    local head = pack('<I7I6I3I7', fresh, q[2], #runs + #tail + 7, units)
    parts[count + 1], parts[count + 2], parts[count + 3] = head, runs, tail
    return count + 3, fresh
  end
  local fresh, a, b, c = leave(p, q)
  if fresh <= now then return count, 0 end
  if q[14] then
    local lows = pack_lows(p)
    a = pack('<I7I6I3I7I7I7I7', fresh, q[2], 28 + #lows, a, b, s1[p], s2[p]) .. lows
  elseif kind == TOKENS_REFUNDABLE then
    a = pack('<I7I6I3I7I7I7I7', fresh, q[2], 28, a, b, s1[p], s2[p])
  elseif kind == SLIDING then
    a = pack('<I7I6I3I7I7I7', fresh, q[2], 21, a, b, c)
  else
    a = pack('<I7I6I3I7I7', fresh, q[2], 14, a, b)
  end
  parts[count + 1] = a
  return count + 1, fresh
end

-- Reads a place under another quota, as if it had been written and read again. What was written stays
-- as it is unless it is touched under the new quota too.
local switch
if has_switch then
  function switch(p, old, new)
    switched, written = switched or {}, written or {}
    switched[p] = new
    if touched[p] then
      local parts = {}
      push(parts, 0, p, old)
      written[p], touched[p] = concat(parts), false
    end
    local value = written[p] and '\1' .. written[p]
    if not value then
      for k = 1, key_count do
        if bases[k] and bases[k] < p then value = reply[k + 2] end
      end
    end
    if value then enter_all(value, {new}, p - 1) else clear(p, new) end
  end
end

-- The value with what was touched put in its place, and when it is fresh; nil if nothing is left.
local function pack_all(value, class, base)
  local parts, count, last, done = {'\1'}, 1, 0, {}
  local pos, size, n = 2, value and #value or 0, #class
  while pos <= size do
    local fresh, id, length = unpack('<I7I6I3', value, pos)
    local is_other = true
    for i = 1, n do
      local q = class[i]
      if q[2] == id and touched[base + i] ~= nil then
        is_other = false
        fresh = 0
        if not done[i] then count, fresh = push(parts, count, base + i, q) end
        done[i] = true
      end
    end
    if is_other and fresh > now then
      count = count + 1
      parts[count] = sub(value, pos, pos + 15 + length)
    end
    if fresh > last then last = fresh end
    pos = pos + 16 + length
  end
  for i = 1, n do
    if touched[base + i] ~= nil and not done[i] then
      local fresh
      count, fresh = push(parts, count, base + i, class[i])
      if fresh > last then last = fresh end
    end
  end
  if count == 1 then return nil end
  -- One long string at a time, where it is but one log.
  if count == 4 then return parts[1] .. parts[2] .. parts[3] .. parts[4], last end
  return concat(parts), last
end

-- Writes all keys that were touched. Writing first and deleting last: a server that is out of memory
-- or read-only refuses the first write, and then nothing has been done.
local function save_all()
  local gone = {}
  for k = 1, key_count do
    local base, class, is_touched = bases[k], classes[class_of(k)], false
    if base then
      for i = base + 1, base + #class do
        if touched[i] ~= nil then is_touched = true end
      end
    end
    if is_touched then
      if switched then
        local last = {}
        for i = 1, #class do last[i] = switched[base + i] or class[i] end
        class = last
      end
      local value, fresh = pack_all(reply[k + 2], class, base)
      if value then
        call('SET', KEYS[k], value, 'PXAT', string.format('%d', math.max((fresh - fresh % 1000) / 1000, (now - now % 1000) / 1000 + 1)))
      elseif reply[k + 2] then
        gone[#gone + 1] = KEYS[k]
      end
    end
  end
  for i = 1, #gone do call('DEL', gone[i]) end
end

-- One step: ask all, then charge all or none; see core's `step`.

-- The places of the request at hand: one less than the first of each of its keys.
local at_key = {}

-- Enforced takes from distinct places: what nearly every request is.
local function take_all(asks)
  for i = 1, #asks do
    local ask = asks[i]
    if ask[6] > room[at_key[ask[1]] + ask[3]] then return false end
  end
  for i = 1, #asks do
    local ask = asks[i]
    charge(at_key[ask[1]] + ask[3], ask[4], ask[7])
  end
  return true
end

-- How many more times `asks`, which have just been taken, fit; at most `count`.
local function take_again(asks, count)
  for i = 1, #asks do
    local ask = asks[i]
    local left = room[at_key[ask[1]] + ask[3]]
    local fit = (left - left % ask[7]) / ask[7]
    if fit < count then count = fit end
  end
  -- Between two ticks a charge may leave less than nothing.
  if count <= 0 then return 0 end
  for i = 1, #asks do
    local ask = asks[i]
    charge(at_key[ask[1]] + ask[3], ask[4], ask[7] * count)
  end
  return count
end

-- Anything else. What is given back is given back first, and in any case; what is returned, last, and
-- only if it is taken. `passed`: all enforced asks have room; `taken`: at least all that are not
-- forced have; `refusing`: limits that refuse and have a block, which is charged last of all.
local function decide(asks)
  local passed, taken, failed, gives, refusing = true, true, nil, false, nil
  for i = 1, #asks do
    local ask = asks[i]
    local op = ask[2]
    if op == GIVE_BACK then
      gives = true
      give_back(at_key[ask[1]] + ask[3], ask[4], ask[7], ask[8], ask[9])
    elseif op == DROP then
      local p = at_key[ask[1]] + ask[3]
      clear(p, ask[4])
      touched[p] = true
    elseif op == SWITCH then
      switch(at_key[ask[1]] + ask[3], quotas[ask[8]], ask[4])
    end
  end
  for i = 1, #asks do
    local ask = asks[i]
    local need = ask[6]
    if need > 0 and need > room[at_key[ask[1]] + ask[3]] then
      if ask[5] > 0 then
        failed = failed or {}
        failed[ask[5]] = true
      else
        local op = ask[2]
        passed = false
        if op ~= FORCE then taken = false end
        if ask[8] > 0 and op ~= BLOCK then
          refusing = refusing or {}
          refusing[ask[8]] = true
        end
      end
    end
  end
  for i = 1, #asks do
    local ask = asks[i]
    local op = ask[2]
    if op == TAKE or op == FORCE then
      local charged
      if ask[5] > 0 then
        charged = passed and not (failed and failed[ask[5]])
      elseif op == FORCE then
        charged = taken
      else
        charged = passed
      end
      if charged then
        local p = at_key[ask[1]] + ask[3]
        if op == TAKE then charge(p, ask[4], ask[7]) else force(p, ask[4], ask[7]) end
      end
    elseif op == RETURN and taken and now <= ask[9][4] then
      -- These come last.
      gives = true
      give_back(at_key[ask[1]] + ask[3], ask[4], ask[7], ask[8], ask[9])
    end
  end
  if refusing then
    for i = 1, #asks do
      local ask = asks[i]
      if ask[2] == BLOCK and refusing[ask[8]] then
        local p = at_key[ask[1]] + ask[3]
        -- One that is in force is not prolonged.
        if ask[7] <= room[p] then charge(p, ask[4], ask[7]) end
      end
    end
  end
  if gives then
    for i = 1, #asks do
      local ask = asks[i]
      local op, p = ask[2], at_key[ask[1]] + ask[3]
      -- As good as new is new, as it is for whoever comes in the next call.
      if (op == GIVE_BACK or op == RETURN) and leave(p, ask[4]) <= now then clear(p, ask[4]) end
    end
  end
  return passed
end

-- Read everything, decide everything in order, write everything.
for k = 1, key_count do
  local failure = load(k)
  if failure then return failure end
end

local marks, mark_count = {}, 0
for _ = 1, run_count do
  local s, repeated, count
  s, repeated, count, pos = unpack('<I2BI2', program, pos)
  local shape = shapes[s]
  local keys, simple, asks = shape[1], shape[2], shape[3]
  local times = 1
  if repeated == 1 then count, times = 1, count end
  for _ = 1, count do
    local whole = true
    for i = 1, keys do
      local low, high = byte(program, pos, pos + 1)
      local base = bases[low + high * 256 + 1]
      pos = pos + 2
      at_key[i] = base
      whole = whole and base
    end
    mark_count = mark_count + 1
    if not whole then
      marks[mark_count] = rep('x', times)
    elseif not simple then
      marks[mark_count] = decide(asks) and '1' or '0'
      for _ = 2, times do
        mark_count = mark_count + 1
        marks[mark_count] = decide(asks) and '1' or '0'
      end
    elseif not take_all(asks) then
      -- A refusal changes nothing, so the next is refused as well.
      marks[mark_count] = times == 1 and '0' or rep('0', times)
    elseif times == 1 then
      marks[mark_count] = '1'
    else
      local passed = 1 + take_again(asks, times - 1)
      marks[mark_count] = rep('1', passed) .. rep('0', times - passed)
    end
  end
end

save_all()
reply[2] = concat(marks)
return reply

