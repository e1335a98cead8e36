-- Sliding log as a sorted set: a member for each unit, its instant in nanoseconds, which is the score
-- too. The units of one microsecond count down from it, so that rounding up tells it, of theirs and
-- of ours alike. Where a thousand have the same, the others have the next: they count a little
-- longer.

--
-- A long set is not read as a whole where that can be helped: to take, it is enough to know how many
-- units count, the newest, and as many of the oldest as a refusal may wait for. The value then is
-- the number of those that are not listed, the newest, and the oldest.

-- What was there, by key: the members of each stamp; or, of a long set, how many are over.
local members_of, over_of = {}, {}
-- A set of no more members than this is short.
local SHORT = 16

-- A log's quota: 11 the largest need, 12 whether all has to be read.
for i = 1, quota_count do quotas[i][11] = 0 end
for s = 1, shape_count do
  local asks = shapes[s][3]
  for i = 1, #asks do
    local ask = asks[i]
    local op, q = ask[2], ask[4]
    if op == SWITCH then quotas[ask[8]][12] = true end
    -- A look that has a need asks whether that would fit, and reads no more than a take.
    local is_test = op == LOOK and ask[6] > 0
    if op ~= TAKE and op ~= FORCE and op ~= DROP and not is_test then q[12] = true end
    if ask[6] > q[11] then q[11] = ask[6] end
  end
end

-- How many of a set's members are over. Scores do not tell one nanosecond from the next, so those
-- that look over are looked at.
local function count_over(key, q)
  local ended = now - q[5]
  if ended <= 0 then return 0 end
  local over = call('ZCOUNT', key, '-inf', format('%.0f000', ended))
  while over > 0 do
    local stamp = whole_nanos(call('ZRANGE', key, over - 1, over - 1)[1])
    if not stamp then return nil end
    if stamp <= ended then break end
    over = over - 1
  end
  return over
end

-- The value of a long set; nothing where it has to be read as a whole.
local function fetch_long(k, q)
  local key = KEYS[k]
  local last = call('ZRANGE', key, -1, -1)[1]
  local newest = whole_nanos(last)
  if not newest or newest >= now then return nil end
  local over = count_over(key, q)
  if not over then return nil end
  local live = call('ZCOUNT', key, '-inf', '+inf') - over
  local listed = q[4]
  if live - q[3] > listed then listed = live - q[3] end
  listed = listed + q[11]
  if listed > live then listed = live end
  over_of[k] = over
  if listed == 0 then return {live, last} end
  local value = call('ZRANGE', key, over, over + listed - 1)
  insert(value, 1, last)
  insert(value, 1, live - listed)
  return value
end

fetch[SET] = function(k, q)
  local value = read('ZRANGE', KEYS[k], 0, SHORT)
  if value == 0 or value.err then return value end
  if #value == 0 then return false end
  if #value <= SHORT then return value end
  return not q[12] and fetch_long(k, q) or call('ZRANGE', KEYS[k], 0, -1)
end

local function enter_long(p, q, value)
  local rest, last = value[1], whole_nanos(value[2])
  local runs, before = {}, 0
  for i = 3, #value do
    local stamp = whole_nanos(value[i])
    if not stamp or stamp < before then return false end
    before = stamp
    runs[i - 2] = pack('<I7I7', stamp, 1)
  end
  if rest > 0 then runs[#runs + 1] = pack('<I7I7', last, rest) end
  if #runs == 0 then clear(p, q) else enter_log(p, q, concat(runs), rest + #value - 2) end
  return true
end

enter_form[SET] = function(p, q, value, k)
  if type(value[1]) == 'number' then return enter_long(p, q, value) end
  local groups, parts, last = {}, {}, nil
  for i = 1, #value do
    local stamp = whole_nanos(value[i])
    if not stamp then return false end
    if last and last.stamp == stamp then
      last[#last + 1] = value[i]
    elseif last and last.stamp > stamp then
      -- The score says another thing than the member.
      return false
    else
      last = {value[i], stamp = stamp}
      groups[#groups + 1] = last
    end
  end
  if last.stamp + q[5] <= now then
    clear(p, q)
  else
    for i = 1, #groups do parts[i] = pack('<I7I7', groups[i].stamp, #groups[i]) end
    enter_log(p, q, concat(parts), #value)
  end
  members_of[k] = groups
  return true
end

-- Adds `count` members of `stamp` that none of the groups from the `from`th on has, and tells the last
-- stamp it needed.
local function number(added, stamp, count, groups, from)
  local used = {}
  for i = from, #groups do
    for j = 1, #groups[i] do used[groups[i][j]] = true end
  end
  local down = 0
  while count > 0 do
    local member
    if down == 0 then
      member = format('%.0f000', stamp)
    else
      member = format('%.0f%03d', stamp - 1, 1000 - down)
    end
    if not used[member] then
      added[#added + 1], added[#added + 2] = member, member
      count = count - 1
    end
    down = down + 1
    if down == 1000 and count > 0 then down, stamp = 0, stamp + 1 end
  end
  return stamp
end

-- Of a long set nothing can have changed but that something was taken now.
local function write_long(q, k, runs)
  local stamp, units = unpack('<I7I7', runs, #runs - 13)
  if stamp ~= now then return end
  local added = {}
  stamp = number(added, stamp, units, {}, 1)
  call_each('ZADD', KEYS[k], added)
  if over_of[k] > 0 then call('ZREMRANGEBYRANK', KEYS[k], 0, over_of[k] - 1) end
  local fresh = stamp + q[5]
  if fresh > END then fresh = END end
  expire(KEYS[k], fresh)
end

write[SET] = function(p, q, k)
  local fresh, runs = leave(p, q)
  if fresh <= now then return false end
  if over_of[k] then
    write_long(q, k, runs)
    return true
  end
  local groups, added, removed = members_of[k] or {}, {}, {}
  local g, last = 1, 0
  for at = 1, #runs, 14 do
    local stamp, units = unpack('<I7I7', runs, at)
    while groups[g] and groups[g].stamp < stamp do
      for i = 1, #groups[g] do insert(removed, groups[g][i]) end
      g = g + 1
    end
    last = stamp
    if groups[g] and groups[g].stamp == stamp then
      local group = groups[g]
      for i = units + 1, #group do insert(removed, group[i]) end
      if units > #group then last = number(added, stamp, units - #group, groups, g) end
      g = g + 1
    else
      last = number(added, stamp, units, groups, g)
    end
  end
  for i = g, #groups do
    for j = 1, #groups[i] do insert(removed, groups[i][j]) end
  end
  call_each('ZADD', KEYS[k], added)
  call_each('ZREM', KEYS[k], removed)
  fresh = last + q[5]
  if fresh > END then fresh = END end
  expire(KEYS[k], fresh)
  return true
end
