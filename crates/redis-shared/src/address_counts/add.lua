-- KEYS: the map, the marker of who sends this. ARGV: the number of this piece, how many fields the
-- map may have besides `other`, how long a new map lasts in milliseconds (0: for ever); then fields
-- and counts in turn. Answers how much went to `other`. A piece that was here before changes nothing.
local map, marker = KEYS[1], KEYS[2]
local wrong = want(map, 'hash') or want(marker, 'string')
if wrong then return wrong end
local call = redis.call
local last, said = string.match(call('GET', marker) or '', '^(%d+) (%d+)$')
if last and tonumber(last) >= tonumber(ARGV[1]) then return said end

local fields = call('HLEN', map)
local room = tonumber(ARGV[2]) - fields + call('HEXISTS', map, 'other')
local is_tight = room < (#ARGV - 3) / 2
local other, has_counted = 0, false
-- First, so that an error half way never lets anything be counted twice.
call('SET', marker, ARGV[1] .. ' 0', 'EX', 600)

local function add(field, count)
  local done, why = increase(map, field, count)
  has_counted = has_counted or done ~= nil
  return done, why
end

-- Into `other`; a hand-written `other` that is no number makes way.
local function spill(count)
  other = other + count
  local done, why = add('other', count)
  if done == false then
    call('HSET', map, 'other', why == 'overflow' and '9223372036854775807' or count)
  end
  return done == nil and why
end

local function place(field, count)
  if is_tight and field ~= 'other' and call('HEXISTS', map, field) == 0 then
    if room < 1 then return spill(count) end
    room = room - 1
  end
  local done, why = add(field, count)
  if done == nil then return why end
  if done == false or field == 'other' then
    if done then other = other + count else return spill(count) end
  end
end

for i = 4, #ARGV, 2 do
  local failure = place(ARGV[i], ARGV[i + 1])
  if failure then
    if not has_counted then call('DEL', marker) end
    return failure
  end
end
if fields == 0 and tonumber(ARGV[3]) > 0 then call('PEXPIRE', map, ARGV[3]) end
if other > 0 then call('SET', marker, ARGV[1] .. ' ' .. whole(other), 'EX', 600) end
return whole(other)
