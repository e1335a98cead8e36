-- Decides requests that each take from one token bucket that is never given back to.
--
-- KEYS: one per bucket, each once. ARGV[1]: groups, each a header
--   id drain price brim ahead (doubles), keys runs (I2)
-- and its runs, (cost count) in doubles: what is asked of each of its keys, in order. The next
-- `keys` keys belong to it.
--
-- Replies the value of each key as it was before, then now, then how many requests passed. A value
-- of 0 stands for a key of another type. Such keys, and values that are not ours, are left alone.

local spread = unpack
local call, unpack, pack = redis.call, struct.unpack, struct.pack
local program = ARGV[1]
local now = call('TIME')
now = now[1] * 1000000 + now[2]
-- One call for all of them. It takes a key of another type for none; writing finds out.
local values = call('MGET', spread(KEYS))
local passed, key, place = 0, 1, 1

-- The state in a value that is not just one record of ours: at and fraction, the records of others
-- that still matter, and until when they do. False if it is not of our form.
local function search(value, id)
  local at, fraction, others, last, from, size = nil, nil, nil, 0, 2, #value
  if string.byte(value) ~= 1 then return false end
  while from <= size do
    if from + 15 > size then return false end
    local fresh, record, length = unpack('<I7I6I3', value, from)
    local to = from + 15 + length
    if to > size then return false end
    if record == id then
      -- It may remember what giving back needs, which is of no use here.
      if length ~= 35 and (length < 14 or length > 140 or length % 14 ~= 0) then return false end
      if not at and fresh > now then at, fraction = unpack('<I7I7', value, from + 16) end
    elseif fresh > now then
      others = (others or '') .. string.sub(value, from, to)
      if fresh > last then last = fresh end
    end
    from = to + 1
  end
  return true, at, fraction, others, last
end

while place <= #program do
  local id, drain, price, brim, ahead, keys, runs
  id, drain, price, brim, ahead, keys, runs, place = unpack('<dddddI2I2', program, place)
  local first = place
  place = place + runs * 16
  for k = key, key + keys - 1 do
    local value = values[k]
    local ours, at, fraction, others, last = true, nil, nil, nil, 0
    if value then
      -- One record of ours is what there usually is.
      local version, fresh, record, length
      if #value == 31 then
        version, fresh, record, length, at, fraction = unpack('<I1I7I6I3I7I7', value)
      end
      if record ~= id or length ~= 14 or version ~= 1 then
        ours, at, fraction, others, last = search(value, id)
      end
    end
    if ours then
      local owed, fits, write = 0, 0, false
      if at and at >= now then
        if at - now > ahead then
          -- The clock went back or the quota was cut: used up as of now, and no longer.
          owed, write = brim, true
        else
          if fraction >= drain then fraction = drain - 1 end
          owed = (at - now) * drain + fraction
        end
      end
      local from = first
      for _ = 1, runs do
        local cost, count
        cost, count, from = unpack('<dd', program, from)
        local units, room = cost * price, brim - owed
        if units <= room then
          local fit = (room - room % units) / units
          if fit > count then fit = count end
          owed, fits, write = owed + fit * units, fits + fit, true
        end
      end
      if write then
        fraction = owed % drain
        at = now + (owed - fraction) / drain
        local fresh = at
        if fraction > 0 then fresh = at + 1 end
        if fresh > last then last = fresh end
        local after = pack('<I1I7I6I3I7I7', 1, fresh, id, 14, at, fraction)
        if others then after = after .. others end
        if value then
          call('SET', KEYS[k], after, 'PXAT', string.format('%d', math.max((last - last % 1000) / 1000, (now - now % 1000) / 1000 + 1)))
          passed = passed + fits
        elseif call('SET', KEYS[k], after, 'NX', 'PXAT', string.format('%d', math.max((last - last % 1000) / 1000, (now - now % 1000) / 1000 + 1))) then
          passed = passed + fits
        else
          values[k] = 0
        end
      end
    end
  end
  key = key + keys
end

local count = #KEYS
values[count + 1], values[count + 2] = now, passed
return values
