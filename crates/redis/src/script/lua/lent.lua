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
    if enter_any(p, q, at, fraction) then unknown_lows(p, q) end
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
