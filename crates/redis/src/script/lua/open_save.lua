-- Reads and writes all keys, each in its form.
local load_packed, save_packed, switch_packed = load, save_all, switch

local function load(k)
  local form = form_of[k]
  if form == PACKED then return load_packed(k) end
  local q, p = classes[class_of(k)][1], next_place + 1
  next_place, bases[k] = p, p - 1
  local value = fetch[form](k, q)
  if type(value) == 'table' and value.err then return value end
  if not value then
    clear(p, q)
  elseif value == 0 or not enter_form[form](p, q, value, k) then
    value, bases[k], touched[p] = 0, false, nil
  end
  reply[k + 2] = value
end

-- Reads a place under another quota, as if it had been written and read again.
local function switch(p, old, new)
  local k
  for i = 1, key_count do
    if bases[i] and bases[i] < p then k = i end
  end
  local form = form_of[k]
  if form == PACKED then return switch_packed(p, old, new) end
  switched = switched or {}
  switched[p] = new
  if not touched[p] then
    if reply[k + 2] then enter_form[form](p, new, reply[k + 2], k) else clear(p, new) end
    return
  end
  local fresh, a, b = leave(p, old)
  if fresh <= now then
    clear(p, new)
  elseif form == SET then
    if unpack('<I7', a, #a - 13) + new[5] <= now then clear(p, new) else enter_log(p, new, a, b) end
  elseif form == WINDOW then
    enter_fixed(p, new, a, b)
  else
    if old[1] ~= TOKENS_REFUNDABLE or old[7] ~= new[7] then
      forget_credits(p, new)
    elseif not old[14] then
      unknown_lows(p, new)
    end
    if old[7] ~= new[7] then
      if b > 0 then a = a + 1 end
      a = a * old[7]
      a, b = (a + -a % new[7]) / new[7], 0
    end
    enter_state(p, new, a, b)
  end
end

-- Writes all keys that were touched: writes first, deletes last.
local function save_all()
  local gone = {}
  for k = 1, key_count do
    local base, form = bases[k], form_of[k]
    if base and form ~= PACKED then
      local p = base + 1
      if touched[p] then
        local q = switched and switched[p] or classes[class_of(k)][1]
        if not write[form](p, q, k) and reply[k + 2] then insert(gone, k) end
      end
      bases[k] = false
    end
  end
  -- The rest is packed.
  save_packed()
  for i = 1, #gone do
    local k = gone[i]
    if form_of[k] == WINDOW then call('HDEL', KEYS[k], field_of[k]) else call('DEL', KEYS[k]) end
  end
  finish_hashes()
end
