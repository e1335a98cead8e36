-- Calendar window: room is the amount less the count; beside it, when the window ends and when it was last
-- charged. The quota has the window around now, which is picked where the quota is read.
local enter_calendar, leave_calendar, give_back_calendar
local DAY = 86400000000

if has[CALENDAR] then
  function enter_calendar(p, q, ending, used, at)
    local start, finish = q[22], q[23]
    -- Outside all windows that the caller knows, nothing is decided.
    if finish then
      if used == 0 or at < start then
        ending, used, at = finish, 0, now
      elseif ending ~= finish and (at < finish or at >= finish + finish - start or
          window_around(q, at) ~= ending) then
        -- Of other starts, and it counts in the present window; or further ahead than a clock goes back.
        if at >= finish then
          at = now
          if used < q[3] then used = q[3] end
        end
        ending, touched[p] = finish, true
      end
    end
    room[p], s1[p], s2[p] = q[3] - used, ending, at
  end

  function leave_calendar(p, q)
    local used, fresh = q[3] - room[p], s1[p]
    if used == 0 then
      fresh = 0
    elseif q[6] ~= 0 then
      -- A window of other starts may contain the last charge for as long.
      local reach = s2[p] + q[5] + (q[5] < DAY and q[5] or DAY)
      if reach > fresh then fresh = reach end
    end
    if fresh > END then fresh = END end
    return fresh, s1[p], used, s2[p]
  end

  -- Only where the window that was charged is still open.
  function give_back_calendar(p, q, units, at)
    local used = q[3] - room[p]
    if used > 0 and at >= q[22] then
      used = used - units
      -- Without a count there is no window; the next charge opens one.
      if used <= 0 then used, s1[p], s2[p] = 0, q[23], now end
      room[p] = q[3] - used
    end
  end
end
