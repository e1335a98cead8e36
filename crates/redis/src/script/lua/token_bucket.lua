-- Token bucket: room is the brim less the debt at the present tick.

local function enter_tokens(p, q, at, fraction)
  local ahead, drain = at - q[9], q[5]
  if ahead < 0 then
    room[p] = q[3]
  elseif ahead > q[6] then
    -- Further ahead than this quota can have brought it: empty as of now.
    room[p], touched[p] = 0, true
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

-- Remembers how low the debt was before a charge that begins with this room.
local function note_low(p, q, begin)
  local debt = q[8] - begin
  local slot = (now - now % 100000) / 100000
  local later = slot - s1[p]
  if later <= 0 then
    if debt < s2[p] then s2[p] = debt end
    return
  elseif later == 1 then
    s3[p] = s2[p]
  else
    s3[p] = END
  end
  s1[p], s2[p] = slot, debt
end

-- Credits at most the debt that is there only because of the charge; see core.
local function give_back_tokens(p, q, charge, at)
  local most, drain, tick = q[8], q[5], q[7]
  local begin = room[p]
  if begin > most then begin = most end
  local debt = most - begin
  local elapsed = q[9] - (at - at % tick) / tick
  if most < q[3] then elapsed = elapsed + 1 end
  if elapsed < 0 then elapsed = 0 end
  local low = 0
  if q[1] == TOKENS_REFUNDABLE then
    local earlier = s1[p] - (at - at % 100000) / 100000
    if earlier <= 0 then
      low = s2[p]
    elseif earlier == 1 then
      low = s2[p]
      if s3[p] < low then low = s3[p] end
    end
  end
  local credit = charge
  if low < credit then credit = low end
  if charge - elapsed * drain > credit then credit = charge - elapsed * drain end
  if debt < credit then credit = debt end
  local left = debt - credit
  if q[1] == TOKENS_REFUNDABLE then
    for _, low_of in next, {s2, s3} do
      local lower = low_of[p]
      if lower == END then lower = left else lower = lower - charge end
      if lower < 0 then lower = 0 end
      if lower > left then lower = left end
      low_of[p] = lower
    end
  end
  if credit > 0 then room[p] = most - left end
end
