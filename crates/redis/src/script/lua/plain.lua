-- The usual call, without a single function, for making one costs as much as using it: token buckets
-- and fixed windows that nothing is given back to, enforced takes, each from all the bands that are
-- asked for under its keys. Does what the rest of the script does, with a program of its own:
--
--   I2 0  I2 classes  I2 shapes  I2 runs
--   class:     B length, then for each band  B kind  I6 id  I7 full  I7 pace  I7 more
--   keys:      I2 class for each key, unless there is one class alone
--   shape:     B keys, then for each key  B length, and I7 units for each band
--   run:       as in the general program
--
-- What `full`, `pace` and `more` mean is told there too. Values are described in `packed.lua`.
if sub(ARGV[1], 1, 2) == '\0\0' then
  local program = ARGV[1]
  local _, class_count, shape_count, run_count, pos = unpack('<I2I2I2I2', program)

  -- A band: 1 id, 2 full, 3 drain or period, 4 ahead_max or aligned, 5 whether it is a window.
  local classes, lone = {}, true
  for c = 1, class_count do
    local class, n = {}
    n, pos = unpack('<B', program, pos)
    for i = 1, n do
      local kind, id, full, pace, more
      kind, id, full, pace, more, pos = unpack('<BI6I7I7I7', program, pos)
      class[i] = {id, full, pace, more, kind == 3}
      lone = lone and kind == 1
    end
    lone = lone and n == 1
    classes[c] = class
  end
  local key_count, class_pos = #KEYS, pos
  if class_count > 1 then pos = pos + key_count * 2 end

  -- One call for all keys. It takes a key of another type for none, so these are read once more.
  local values = call('MGET', spread(KEYS))

  -- 0. Requests that each take from one token bucket, the most common shape. A value that is not one
  -- record of that bucket, or is out of bounds, leaves all of them to the rest: nothing is written yet.
  local needs, start = {}, pos
  for s = 1, lone and shape_count or 0 do
    local keys
    keys, _, needs[s], pos = unpack('<BBI7', program, pos)
    if keys > 1 then lone = false break end
  end
  if lone then
    local reply, room, bands = {now, ''}, {}, {}
    local band = classes[1][1]
    local id, full, drain, ahead = band[1], band[2], band[3], band[4]
    for k = 1, key_count do
      if class_count > 1 then
        band = classes[unpack('<I2', program, class_pos + k * 2 - 2) + 1][1]
        id, full, drain, ahead, bands[k] = band[1], band[2], band[3], band[4], band
      end
      local value = values[k]
      if value then
        if #value ~= 31 then lone = false break end
        local version, fresh, record, length, a, b = unpack('<BI7I6I3I7I7', value)
        if record ~= id or length ~= 14 or version ~= 1 or b >= drain or a - now > ahead then
          lone = false
          break
        end
        if fresh <= now or a < now then room[k] = full
        else room[k] = full - (a - now) * drain - b end
      else
        -- There may be a key of another type.
        value = try('GET', KEYS[k])
        if value then lone = false break end
        room[k] = full
      end
      reply[k + 2] = value
    end
    if lone then
      local taken, marks, mark = {}, {}, 0
      for _ = 1, run_count do
        local s, repeated, count
        s, repeated, count, pos = unpack('<I2BI2', program, pos)
        local need = needs[s]
        local times = 1
        if repeated == 1 then count, times = 1, count end
        for _ = 1, count do
          local low, high = byte(program, pos, pos + 1)
          local k, fits = low + high * 256 + 1, 0
          pos = pos + 2
          local left = room[k]
          if need <= left then
            fits = times
            if times > 1 then
              local most = (left - left % need) / need
              if most < fits then fits = most end
            end
            room[k], taken[k] = left - fits * need, true
          end
          mark = mark + 1
          if times == 1 then marks[mark] = fits == 1 and '1' or '0'
          else marks[mark] = rep('1', fits) .. rep('0', times - fits) end
        end
      end
      reply[2] = concat(marks)
      for k = 1, key_count do
        if taken[k] then
          if class_count > 1 then
            band = bands[k]
            id, full, drain = band[1], band[2], band[3]
          end
          local used = full - room[k]
          local b = used % drain
          local a = now + (used - b) / drain
          local fresh = a
          if b > 0 then fresh = a + 1 end
          if fresh > END then fresh = END end
          call('SET', KEYS[k], pack('<BI7I6I3I7I7', 1, fresh, id, 14, a, b), @EXPIRE:fresh@)
        end
      end
      return reply
    end
  end
  pos = start

  -- 1. Read every key. `bases` is false where a value is not ours.
  local reply, bases, room, starts, place = {now, ''}, {}, {}, {}, 0
  -- Of keys that need more than the usual: live records of other bands and when they are fresh, the
  -- value as it was, the places that were settled, and records that remember more than we need.
  local others, others_fresh, settled, settled_at, wide = {}, {}, {}, {}, {}
  local class = classes[1]
  for k = 1, key_count do
    if class_count > 1 then
      class = classes[unpack('<I2', program, class_pos + k * 2 - 2) + 1]
    end
    local n, value = #class, values[k] or try('GET', KEYS[k])
    reply[k + 2], bases[k] = value, place
    local from, at, i = value, 2, 1
    local fits = not value or #value == 1 + 30 * n and byte(value) == 1
    while i <= n do
      if not fits then
        -- Bring the bands' records into order and put the others aside.
        fits, at, i = true, 2, 1
        if type(value) == 'table' then
          if not find(value.err, 'WRONGTYPE', 1, true) then return value end
          reply[k + 2], bases[k] = 0, false
          break
        end
        local size, records, rest, last = #value, {}, {}, 0
        if byte(value) ~= 1 then bases[k] = false break end
        local p = 2
        while p <= size do
          if p + 15 > size then bases[k] = false break end
          local fresh, id, length = unpack('<I7I6I3', value, p)
          local to = p + 15 + length
          if to > size then bases[k] = false break end
          local mine
          for j = 1, n do
            if class[j][1] == id then mine = j end
          end
          if not mine then
            if fresh > now then
              rest[#rest + 1] = sub(value, p, to)
              if fresh > last then last = fresh end
            end
          elseif not records[mine] then
            if length ~= 14 and length ~= 21 and (class[mine][5] or
                length < 28 or length > 147 or length % 7 ~= 0) then
              bases[k] = false
              break
            end
            local state = sub(value, p + 16, p + 29)
            if length % 14 == 7 and length ~= 35 and not class[mine][5] then
              -- The mark may tell of longer ticks; see `adapt.lua`.
              local mark = unpack('<I7', value, to - 6)
              local code = (mark - mark % 524288) / 524288 % 4
              if code == 3 then bases[k] = false break end
              if code > 0 then
                local moment, part = unpack('<I7I7', state)
                if part > 0 then moment = moment + 1 end
                moment = moment * (code == 1 and 1000 or 1000000)
                if moment > END then moment = END end
                state = pack('<I7I7', moment, 0)
              end
            end
            records[mine] = sub(value, p, p + 12) .. '\14\0\0' .. state
            if length > 14 then wide[place + mine] = sub(value, p, to) end
          end
          p = to + 1
        end
        if not bases[k] then break end
        for j = 1, n do
          records[j] = records[j] or pack('<I7I6I3I7I7', 0, class[j][1], 14, 0, 0)
        end
        from = '\1' .. concat(records)
        if last > 0 then others[k], others_fresh[k] = concat(rest), last end
      end
      local band, p = class[i], place + i
      local fresh, id, length, a, b = 0
      if from then
        fresh, id, length, a, b, at = unpack('<I7I6I3I7I7', from, at)
        fits = id == band[1] and length == 14
      end
      if fits then
        i = i + 1
        if band[5] then
          if fresh <= now or b == 0 or now >= a + band[3] then
            if band[4] == 1 then a = now - now % band[3] else a = now end
            room[p], starts[p] = band[2], a
          elseif a > now + band[3] then
            -- Further ahead than this quota can have brought it: full as of now.
            if band[4] == 1 then a = now - now % band[3] else a = now end
            if b < band[2] then b = band[2] end
            room[p], starts[p], settled[k], settled_at[p] = band[2] - b, a, from, true
          else
            room[p], starts[p] = band[2] - b, a
          end
        elseif fresh <= now or a < now and (b < band[3] or a + 1 < now) then
          room[p] = band[2]
        elseif a - now > band[4] or b >= band[3] and a + 1 - now > band[4] then
          room[p], settled[k], settled_at[p] = 0, from, true
        else
          -- A fraction may have been left by a quota with a larger drain: it is less than a tick.
          if b > band[3] then b = band[3] end
          room[p] = band[2] - (a - now) * band[3] - b
        end
      end
    end
    place = place + n
  end

  -- 2. Decide every request in order.
  local shapes = {}
  for s = 1, shape_count do
    local keys, m = nil, 0
    keys, pos = unpack('<B', program, pos)
    local sizes, units = {}, {}
    for j = 1, keys do
      local n
      n, pos = unpack('<B', program, pos)
      sizes[j] = n
      for _ = 1, n do
        m = m + 1
        units[m], pos = unpack('<I7', program, pos)
      end
    end
    shapes[s] = {keys, sizes, units}
  end
  local taken, marks, at_key, at_base = {}, {}, {}, {}
  local mark = 0
  for _ = 1, run_count do
    local s, repeated, count
    s, repeated, count, pos = unpack('<I2BI2', program, pos)
    local shape = shapes[s]
    local keys, sizes, units = shape[1], shape[2], shape[3]
    local times = 1
    if repeated == 1 then count, times = 1, count end
    for _ = 1, count do
      local fits, u = times, 0
      for j = 1, keys do
        local low, high = byte(program, pos, pos + 1)
        local k = low + high * 256 + 1
        pos = pos + 2
        local base = bases[k]
        at_key[j], at_base[j] = k, base
        if not base then
          fits = -1
        elseif fits > 0 then
          for i = base + 1, base + sizes[j] do
            u = u + 1
            local left, need = room[i], units[u]
            if need > left then
              fits = 0
              break
            elseif times > 1 then
              left = (left - left % need) / need
              if left < fits then fits = left end
            end
          end
        end
      end
      if fits > 0 then
        u = 0
        for j = 1, keys do
          local base = at_base[j]
          taken[at_key[j]] = true
          for i = base + 1, base + sizes[j] do
            u = u + 1
            room[i] = room[i] - fits * units[u]
          end
        end
      end
      mark = mark + 1
      if fits < 0 then
        marks[mark] = rep('x', times)
      elseif times == 1 then
        marks[mark] = fits == 1 and '1' or '0'
      else
        marks[mark] = rep('1', fits) .. rep('0', times - fits)
      end
    end
  end
  reply[2] = concat(marks)

  -- 3. Write what was taken from, and what was settled.
  local fresh_of, a_of, b_of = {}, {}, {}
  local gone
  for k = 1, key_count do
    if class_count > 1 then
      class = classes[unpack('<I2', program, class_pos + k * 2 - 2) + 1]
    end
    local base, all = bases[k], taken[k]
    if base and (all or settled[k]) then
      local n, last = #class, others_fresh[k] or 0
      for i = 1, n do
        local band, p = class[i], base + i
        local used, fresh = band[2] - room[p]
        if band[5] then
          fresh = starts[p] + band[3]
          if used == 0 then fresh = 0 end
          a_of[i], b_of[i] = starts[p], used
        else
          local b = used % band[3]
          fresh = now + (used - b) / band[3]
          a_of[i], b_of[i] = fresh, b
          if b > 0 then fresh = fresh + 1 end
        end
        if fresh > END then fresh = END end
        if not all and not settled_at[p] then
          fresh, _, _, a_of[i], b_of[i] = unpack('<I7I6I3I7I7', settled[k], i * 30 - 28)
        end
        fresh_of[i] = fresh
        if fresh > last then last = fresh end
      end
      local value
      if all and n == 1 then
        value = pack('<BI7I6I3I7I7', 1, fresh_of[1], class[1][1], 14, a_of[1], b_of[1])
      elseif all and n == 2 then
        value = pack('<BI7I6I3I7I7I7I6I3I7I7', 1,
          fresh_of[1], class[1][1], 14, a_of[1], b_of[1],
          fresh_of[2], class[2][1], 14, a_of[2], b_of[2])
      elseif all and n == 3 then
        value = pack('<BI7I6I3I7I7I7I6I3I7I7I7I6I3I7I7', 1,
          fresh_of[1], class[1][1], 14, a_of[1], b_of[1],
          fresh_of[2], class[2][1], 14, a_of[2], b_of[2],
          fresh_of[3], class[3][1], 14, a_of[3], b_of[3])
      else
        value = '\1'
        for i = 1, n do
          local kept = not all and not settled_at[base + i] and wide[base + i]
          if fresh_of[i] > now then
            value = value ..
              (kept or pack('<I7I6I3I7I7', fresh_of[i], class[i][1], 14, a_of[i], b_of[i]))
          end
        end
      end
      if others[k] then value = value .. others[k] end
      if last > now then
        call('SET', KEYS[k], value, @EXPIRE:last@)
      else
        gone = gone or {}
        gone[#gone + 1] = KEYS[k]
      end
    end
  end
  if gone then
    for i = 1, #gone do call('DEL', gone[i]) end
  end
  return reply
end
