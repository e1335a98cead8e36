-- A state that was written under other numbers; see core's `adapt`.
--
-- A record that cannot be read without knowing by which numbers it was written ends with a mark:
--   what parts of a tick are counted in (19 bits), the number of the tick (2), and of the whole that
--   shares are of, how many bits follow the leading ones (5), and those (26)

local TICKS = {1, 1000, 1000000}

-- The leading bits of the whole, what to multiply them by, the tick and its parts.
local function read_mark(mark)
  local parts = mark % 524288
  mark = (mark - parts) / 524288
  local code = mark % 4
  mark = (mark - code) / 4
  local shift = mark % 32
  return (mark - shift) / 32, 2 ^ shift, TICKS[code + 1], parts
end

-- What was used, as the same share of the quota's own whole, rounded up.
local function same_share(q, used, of, power)
  local part = (used + -used % power) / power
  while part > 67108864 do
    part = (part + part % 2) / 2
    of = (of - of % 2) / 2
  end
  if of < 1 then of = 1 end
  part = part * q[19]
  part = (part + -part % of) / of * q[20]
  if part > END then part = END end
  return part
end

-- Whether what was used of such a whole has to be scaled.
local function is_scaled(q, of, power)
  return q[19] and of > 0 and of * power ~= q[17] * q[18]
end

-- At and fraction of a token bucket that ends with this mark, and whether its credits still count; nil
-- where there is no such mark.
local function adapt_tokens(q, at, fraction, mark)
  local of, power, tick, parts = 0, 1, 1, 0
  if mark then of, power, tick, parts = read_mark(mark) end
  if not tick then return nil end
  local last = at
  if fraction > 0 then last = at + 1 end
  if is_scaled(q, of, power) or q[19] and of > 0 and tick ~= q[7] then
    local owed = last - (now - now % tick) / tick
    if owed < 0 then owed = 0 end
    at = q[9] + same_share(q, owed, of, power)
  elseif tick > q[7] then
    at = last * (tick / q[7])
  elseif tick < q[7] then
    local ratio = q[7] / tick
    at = (last + -last % ratio) / ratio
  elseif parts ~= q[21] then
    return last, 0, true
  else
    return at, fraction, true
  end
  if at > END then at = END end
  return at, 0, false
end

-- What was counted in a window that ends with this mark.
local function adapt_count(q, used, mark)
  local of, power = read_mark(mark)
  if is_scaled(q, of, power) then return same_share(q, used, of, power) end
  return used
end

-- Sliding windows that were so long, as windows of the quota's own length. What was counted in one
-- counts as if it had been at its end, or now if that has not come.
local function adapt_sliding(q, index, current, previous, from)
  local to = q[5] * q[7]
  if from ~= to then
    local start = index * from
    if start > END then start = END end
    local latest, before = start, start - 1
    if now > start then latest = now end
    if start + from - 1 < latest then latest = start + from - 1 end
    if before < 0 then before = 0 end
    latest = (latest - latest % to) / to
    before = (before - before % to) / to
    index = (now - now % to) / to
    local newest = before
    if current > 0 then newest = latest end
    if newest > index then index = newest end
    local here, there = 0, 0
    if latest == index then here = current elseif latest == index - 1 then there = current end
    if before == index then
      here = here + previous
    elseif before == index - 1 then
      there = there + previous
    end
    current, previous = here, there
  end
  -- A count that a larger amount left; all products are to stay exact.
  local most = (4503599627370495 - 4503599627370495 % q[5]) / q[5]
  if current > most then current = most end
  if previous > most then previous = most end
  return index, current, previous
end
