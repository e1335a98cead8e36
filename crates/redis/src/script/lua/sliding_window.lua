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
