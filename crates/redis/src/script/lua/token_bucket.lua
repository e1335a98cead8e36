-- Token bucket: room is the brim less the debt at the present tick.

-- Counts what the debt fell by otherwise than by the clock, in ticks.
local function count_credit(p, ticks)
  local sum = s2[p] + ticks
  if sum >= END then sum = END - 1 end
  s2[p] = sum
end

-- Returns true for a state that this quota cannot have left: it counts as empty as of now.
local function enter_tokens(p, q, at, fraction)
  local drain = q[5]
  -- A fraction may have been left by a quota with a larger drain: it is less than a tick.
  if fraction >= drain then at, fraction = at + 1, 0 end
  local ahead = at - q[9]
  if ahead < 0 then
    room[p] = q[3]
  elseif ahead > q[6] then
    -- Further ahead than this quota can have brought it.
    room[p], touched[p] = 0, true
    if q[1] == TOKENS_REFUNDABLE then
      count_credit(p, at - q[9] - (q[3] - q[3] % drain) / drain + 1)
    end
    return true
  else
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
