-- One step: ask all, then charge all or none; see core's `step`.

-- The places of the request at hand: one less than the first of each of its keys.
local at_key = {}

-- Enforced takes from distinct places: what nearly every request is.
local function take_all(asks)
  for i = 1, #asks do
    local ask = asks[i]
    if ask[6] > room[at_key[ask[1]] + ask[3]] then return false end
  end
  for i = 1, #asks do
    local ask = asks[i]
    charge(at_key[ask[1]] + ask[3], ask[4], ask[7])
  end
  return true
end

-- How many more times `asks`, which have just been taken, fit; at most `count`.
local function take_again(asks, count)
  for i = 1, #asks do
    local ask = asks[i]
    local left = room[at_key[ask[1]] + ask[3]]
    local fit = (left - left % ask[7]) / ask[7]
    if fit < count then count = fit end
  end
  -- Between two ticks a charge may leave less than nothing.
  if count <= 0 then return 0 end
  for i = 1, #asks do
    local ask = asks[i]
    charge(at_key[ask[1]] + ask[3], ask[4], ask[7] * count)
  end
  return count
end

-- Anything else. What is given back is given back first, and in any case; what is returned, last, and
-- only if it is taken. `passed`: all enforced asks have room; `taken`: at least all that are not
-- forced have; `refusing`: limits that refuse and have a block, which is charged last of all. Those in
-- shadow mode have negative numbers there, and are charged where the request passes.
local function decide(asks)
  local passed, taken, failed, gives, refusing = true, true, nil, false, nil
  for i = 1, #asks do
    local ask = asks[i]
    local op = ask[2]
    if op == GIVE_BACK then
      gives = true
      give_back(at_key[ask[1]] + ask[3], ask[4], ask[7], ask[8], ask[9])
    elseif op == DROP then
      local p = at_key[ask[1]] + ask[3]
      clear(p, ask[4])
      touched[p] = true
    elseif op == SWITCH then
      switch(at_key[ask[1]] + ask[3], quotas[ask[8]], ask[4])
    end
  end
  for i = 1, #asks do
    local ask = asks[i]
    local need = ask[6]
    if need > 0 and need > room[at_key[ask[1]] + ask[3]] then
      local op, limit = ask[2], ask[8]
      if ask[5] > 0 then
        failed = failed or {}
        failed[ask[5]] = true
        limit = -limit
      else
        passed = false
        if op ~= FORCE then taken = false end
      end
      if limit ~= 0 and op ~= BLOCK then
        refusing = refusing or {}
        refusing[limit] = true
      end
    end
  end
  for i = 1, #asks do
    local ask = asks[i]
    local op = ask[2]
    if op == TAKE or op == FORCE then
      local charged
      if ask[5] > 0 then
        charged = passed and not (failed and failed[ask[5]])
      elseif op == FORCE then
        charged = taken
      else
        charged = passed
      end
      -- A debit of nothing only asks.
      if charged and ask[7] > 0 then
        local p = at_key[ask[1]] + ask[3]
        if op == TAKE then charge(p, ask[4], ask[7]) else force(p, ask[4], ask[7]) end
      end
    elseif op == RETURN and taken and now <= ask[9][4] then
      -- These come last.
      gives = true
      give_back(at_key[ask[1]] + ask[3], ask[4], ask[7], ask[8], ask[9])
    end
  end
  if refusing then
    for i = 1, #asks do
      local ask = asks[i]
      local limit = ask[8]
      if ask[5] > 0 then limit = passed and -limit end
      if ask[2] == BLOCK and refusing[limit] then
        local p = at_key[ask[1]] + ask[3]
        -- One that is in force is not prolonged.
        if ask[7] <= room[p] then charge(p, ask[4], ask[7]) end
      end
    end
  end
  if gives then
    for i = 1, #asks do
      local ask = asks[i]
      local op, p = ask[2], at_key[ask[1]] + ask[3]
      -- As good as new is new, as it is for whoever comes in the next call.
      if (op == GIVE_BACK or op == RETURN) and leave(p, ask[4]) <= now then clear(p, ask[4]) end
    end
  end
  return passed
end
