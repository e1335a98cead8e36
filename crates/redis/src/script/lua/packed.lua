-- The packed layout: one string per key, a version and then a record for each band.
--
--   B version = 1, then records: I7 fresh  I6 id  I3 length, then the payload of that length
--   token bucket: I7 at  I7 fraction; if refundable, I7 since  I7 credited too; if it lends, then up
--                 to eight lows, earliest first: I7 instant  I7 ticks
--   fixed window: I7 start  I7 used
--   calendar window: I7 end  I7 used  I7 last charge
--   sliding window: I7 index  I7 current  I7 previous  I7 period
--   log:          I7 units, then runs, oldest first: I7 stamp  I7 units
--
-- Token buckets whose ticks are longer than a microsecond, and all that scale, end with a mark, I7; see
-- `adapt.lua`. A refundable one then has a low at least: of 0 and 0 if it has none.
--
-- A record that is fresh by now counts as absent. One that is not in the key's class, or not touched,
-- stays as it is.

-- Fills a place from a payload; false if the payload cannot be one of this kind.
local function enter(p, q, value, pos, length, is_fresh)
  local kind = q[1]
  local mark
  if kind == SLIDING then
    if length ~= 21 and length ~= 28 and length ~= 35 then return false end
  elseif kind == LOG then
    if length % 14 ~= 7 then return false end
  elseif kind == CALENDAR then
    if length ~= 21 and length ~= 28 then return false end
  elseif length ~= 14 and length ~= 21 and
      (kind == FIXED or length < 28 or length > 147 or length % 7 ~= 0) then
    return false
  end
  if kind == SLIDING and length == 35 or kind == CALENDAR and length == 28 or
      kind < SLIDING and length % 14 == 7 and length ~= 35 then
    mark = unpack('<I7', value, pos + length - 7)
    local _, _, tick = read_mark(mark)
    if not tick then return false end
  end
  local period = kind == SLIDING and q[5] * q[7]
  if period and length > 21 then period = unpack('<I7', value, pos + 21) end
  if period == 0 then return false end
  if is_fresh then
    clear(p, q)
  elseif kind <= TOKENS_REFUNDABLE then
    local at, fraction = unpack('<I7I7', value, pos)
    local known = true
    if mark or q[7] > 1 then at, fraction, known = adapt_tokens(q, at, fraction, mark) end
    if kind == TOKENS_REFUNDABLE then
      if mark then length = length - 7 end
      if not known or length < 28 or length == 35 then
        -- What was credited before is not known. (Earlier versions kept three other numbers here.)
        s1[p], s2[p], length = now, 0, 28
      else
        s1[p], s2[p] = unpack('<I7I7', value, pos + 14)
        if mark and length == 42 and unpack('<I7', value, pos + 28) == 0 then length = 28 end
      end
      if q[14] then enter_lows(p, value, pos, length) end
    end
    enter_tokens(p, q, at, fraction)
  elseif kind == FIXED then
    local start, used = unpack('<I7I7', value, pos)
    if mark then used = adapt_count(q, used, mark) end
    enter_fixed(p, q, start, used)
  elseif kind == CALENDAR then
    local ending, used, at = unpack('<I7I7I7', value, pos)
    if mark then used = adapt_count(q, used, mark) end
    enter_calendar(p, q, ending, used, at)
  elseif kind == SLIDING then
    local index, current, previous = unpack('<I7I7I7', value, pos)
    if mark then
      current, previous = adapt_count(q, current, mark), adapt_count(q, previous, mark)
    end
    enter_sliding(p, q, adapt_sliding(q, index, current, previous, period))
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
  local rest = ''
  if q[14] then rest = pack_lows(p) end
  if q[16] then
    if kind == TOKENS_REFUNDABLE and rest == '' then rest = pack('<I7I7', 0, 0) end
    rest = rest .. pack('<I7', q[16])
  end
  if kind == TOKENS_REFUNDABLE then
    a = pack('<I7I6I3I7I7I7I7', fresh, q[2], 28 + #rest, a, b, s1[p], s2[p])
  elseif kind == CALENDAR then
    a = pack('<I7I6I3I7I7I7', fresh, q[2], 21 + #rest, a, b, c)
  elseif kind == SLIDING then
    a = pack('<I7I6I3I7I7I7I7', fresh, q[2], 28 + #rest, a, b, c, q[5] * q[7])
  else
    a = pack('<I7I6I3I7I7', fresh, q[2], 14 + #rest, a, b)
  end
  if rest ~= '' then a = a .. rest end
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
        call('SET', KEYS[k], value, @EXPIRE:fresh@)
      elseif reply[k + 2] then
        gone[#gone + 1] = KEYS[k]
      end
    end
  end
  for i = 1, #gone do call('DEL', gone[i]) end
end
