-- Read everything, decide everything in order, write everything.
for k = 1, key_count do
  local failure = load(k)
  if failure then return failure end
end

local marks, mark_count = {}, 0
for _ = 1, run_count do
  local s, repeated, count
  s, repeated, count, pos = unpack('<I2BI2', program, pos)
  local shape = shapes[s]
  local keys, simple, asks = shape[1], shape[2], shape[3]
  local times = 1
  if repeated == 1 then count, times = 1, count end
  for _ = 1, count do
    local whole = true
    for i = 1, keys do
      local low, high = byte(program, pos, pos + 1)
      local base = bases[low + high * 256 + 1]
      pos = pos + 2
      at_key[i] = base
      whole = whole and base
    end
    mark_count = mark_count + 1
    if not whole then
      marks[mark_count] = rep('x', times)
    elseif shape[4] then
      -- Not decided: the caller knows no window around now.
      for i = 1, #asks do
        local ask = asks[i]
        if ask[2] == SWITCH then switch(at_key[ask[1]] + ask[3], quotas[ask[8]], ask[4]) end
      end
      marks[mark_count] = rep('o', times)
    elseif not simple then
      marks[mark_count] = decide(asks) and '1' or '0'
      for _ = 2, times do
        mark_count = mark_count + 1
        marks[mark_count] = decide(asks) and '1' or '0'
      end
    elseif not take_all(asks) then
      -- A refusal changes nothing, so the next is refused as well.
      marks[mark_count] = times == 1 and '0' or rep('0', times)
    elseif times == 1 then
      marks[mark_count] = '1'
    else
      local passed = 1 + take_again(asks, times - 1)
      marks[mark_count] = rep('1', passed) .. rep('0', times - passed)
    end
  end
end

-- Reading may settle a state that is too far ahead for the quota. Inspecting must not save that: its
-- quota need not be the one that the bucket is used with.
if not inspects then save_all() end
reply[2] = concat(marks)
return reply
