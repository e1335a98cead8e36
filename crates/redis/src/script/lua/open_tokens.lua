-- Token buckets in hashes: `tokens`, the instant of the last refill, and `tg`, which is exact.
--
-- `tg` holds both documented values as they were written with it, and then the state: tick, at,
-- fraction and, if refundable, since when credits are counted and their sum, and if it lends, the
-- instant and debt of each low; instants as differences to the one that stands before them, so that it
-- stays short. As long as the documented values are those, the state counts. Where they are not, an
-- instance of the other system has written since, and what it says counts.

-- A difference, which may be negative.
local function signed(text)
  if sub(text, 1, 1) ~= '-' then return whole(text) end
  local number = whole(sub(text, 2))
  return number and -number
end

-- The lows in a text, of which instants are differences to `micros`; nothing where it is broken.
local function read_lows(text, micros)
  local lows, from = {}, 1
  while from <= #text do
    local _, to, at, ticks = find(text, '^ (%-?%d+) (%d+)', from)
    if not to or #lows == LOWS_MAX * 2 then return nil end
    at, ticks = signed(at), whole(ticks)
    if not at or not ticks then return nil end
    at = micros + at
    if at < 0 or at >= END then return nil end
    lows[#lows + 1], lows[#lows + 2] = at, ticks
    from = to + 1
  end
  return lows
end

-- The state beside the documented values; nothing where it does not belong to them. `micros` is the
-- documented instant.
local function exact_state(value, micros, q)
  local begin = value[1] .. ' ' .. value[2] .. ' '
  local exact = value[3]
  if not micros or not exact or sub(exact, 1, #begin) ~= begin then return nil end
  local tick, at, fraction, credits = match(exact, '^(%d+) (%-?%d+) (%d+)(.*)$', #begin + 1)
  tick = tick and whole(tick)
  if tick ~= 1 and tick ~= 1000 and tick ~= 1000000 then return nil end
  at, fraction = signed(at), whole(fraction)
  if not at or not fraction then return nil end
  at = (micros - micros % tick) / tick + at
  if at < 0 or at >= END then return nil end
  if tick ~= q[7] then
    -- It counted in other ticks; so did its credits.
    if credits ~= '' and sub(credits, 1, 1) ~= ' ' then return nil end
    if fraction > 0 then at = at + 1 end
    if tick > q[7] then at = at * (tick / q[7]) else at = (at + -at % (q[7] / tick)) / (q[7] / tick) end
    if at >= END then at = END - 1 end
    return at, 0
  end
  if credits == '' then return at, fraction end
  local since, sum, more = match(credits, '^ (%-?%d+) (%d+)(.*)$')
  if not since then return nil end
  since, sum = signed(since), whole(sum)
  if not since or not sum then return nil end
  since = micros + since
  if since < 0 or since >= END then return nil end
  local lows
  if more ~= '' then
    lows = read_lows(more, micros)
    if not lows then return nil end
  end
  return at, fraction, since, sum, lows
end

-- So many tokens at that instant, as at and fraction.
local function documented_state(tokens, micros, q)
  local price, drain, tick = q[10], q[5], q[7]
  local debt = ceil((q[13] / price - tokens) * price)
  if debt < 0 then debt = 0 end
  if debt > q[13] then debt = q[13] end
  local fraction = debt % drain
  return (micros + -micros % tick) / tick + (debt - fraction) / drain, fraction
end

-- Fills the place, unless the state is as good as new.
local function enter_state(p, q, at, fraction)
  if fraction >= q[5] then at, fraction = at + 1, 0 end
  local fresh = at
  if fraction > 0 then fresh = at + 1 end
  if fresh * q[7] <= now then clear(p, q) else enter_tokens(p, q, at, fraction) end
end

-- What was credited before is not known.
local function forget_credits(p, q)
  if q[1] == TOKENS_REFUNDABLE then s1[p], s2[p] = now, 0 end
  unknown_lows(p, q)
end

-- `instant` reads the documented instant; within `span` microseconds of it the tokens were counted.
local function tokens_form(form, last_name, span, instant, documented)
  fetch[form] = function(k)
    local value = read('HMGET', KEYS[k], 'tokens', last_name, 'tg')
    if value == 0 or value.err or value[1] or value[2] then return value end
    -- A hash without these fields is somebody else's.
    if value[3] or call('EXISTS', KEYS[k]) == 1 then return 0 end
    return false
  end

  enter_form[form] = function(p, q, value)
    if not (value[1] and value[2]) then return false end
    local micros = instant(value[2])
    local at, fraction, since, sum, lows = exact_state(value, micros, q)
    if at then
      forget_credits(p, q)
      if q[1] == TOKENS_REFUNDABLE and since then s1[p], s2[p] = since, sum end
      if q[14] and lows then s3[p] = lows end
      enter_state(p, q, at, fraction)
      return true
    end
    local tokens = decimal(value[1])
    if not tokens or not micros then return false end
    forget_credits(p, q)
    -- At the latest, so that nothing is refilled twice; but not after now if it was before.
    local latest = micros + span - 1
    if micros <= now and latest > now then latest = now end
    enter_state(p, q, documented_state(tokens, latest, q))
    return true
  end

  write[form] = function(p, q, k)
    local fresh, at, fraction = leave(p, q)
    if fresh <= now then return false end
    local tokens, last, micros = documented(p, q)
    at = at - (micros - micros % q[7]) / q[7]
    local exact = format('%s %s %.0f %.0f %.0f', tokens, last, q[7], at, fraction)
    if q[1] == TOKENS_REFUNDABLE then
      exact = format('%s %.0f %.0f', exact, s1[p] - micros, s2[p])
    end
    if q[14] then
      local lows = s3[p]
      for i = 1, #lows, 2 do
        exact = format('%s %.0f %.0f', exact, lows[i] - micros, lows[i + 1])
      end
    end
    call('HSET', KEYS[k], 'tokens', tokens, last_name, last, 'tg', exact)
    expire(KEYS[k], fresh)
    return true
  end
end

-- With its fraction, as of the next whole millisecond.
tokens_form(MILLIS, 'lastRefill', 1000, function(text)
  local micros = decimal(text)
  micros = micros and ceil(micros * 1000)
  if micros and micros >= 0 and micros <= END then return micros end
end, function(p, q)
  local next_ms = now + -now % 1000
  local left = room[p] + ((next_ms - next_ms % q[7]) / q[7] - q[9]) * q[5]
  if left > q[3] then left = q[3] end
  left = left - (q[3] - q[13])
  return format('%.14g', left / q[10]), format('%.0f', next_ms / 1000), next_ms
end)

-- Whole tokens, as of now.
tokens_form(NANOS, 'last_refill_nanos', 1, function(text)
  local micros = whole_nanos(text)
  if micros then return micros end
  micros = decimal(text)
  micros = micros and ceil(micros / 1000)
  if micros and micros >= 0 and micros <= END then return micros end
end, function(p, q)
  return format('%.0f', floor((room[p] - (q[3] - q[13])) / q[10])), format('%.0f000', now), now
end)
