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
