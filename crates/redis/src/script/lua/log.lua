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
