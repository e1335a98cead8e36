-- What can be done to a place, whatever its kind.

-- As good as new.
local function clear(p, q)
  local kind = q[1]
  room[p] = q[3]
  if kind == TOKENS_REFUNDABLE then
    s1[p], s2[p] = 0, 0
  elseif kind == FIXED then
    s1[p] = opening(q)
  elseif kind == CALENDAR then
    s1[p], s2[p] = q[23] or 0, now
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
  if q[24] and s2[p] < now then s2[p] = now end
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
  elseif kind == CALENDAR then
    give_back_calendar(p, q, units, at)
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
  if kind == CALENDAR then return leave_calendar(p, q) end
  if kind == SLIDING then return leave_sliding(p, q) end
  return leave_log(p, q)
end
