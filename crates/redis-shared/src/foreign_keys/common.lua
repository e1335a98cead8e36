-- An error that names the key, if it holds something else than `kind`. To be asked before anything
-- is written, so that a script does all or nothing.
local function want(key, kind)
  local found = redis.call('TYPE', key).ok
  if found == 'none' or found == kind then return nil end
  return redis.error_reply('WRONGTYPE the key ' .. string.gsub(key, '%c', '?')
    .. ' holds a value of type ' .. found .. ', and should hold one of type ' .. kind)
end

-- Adds to a field of a hash: true. Where the field is no number, or no number is as large: false,
-- and the reason. What else may go wrong: nil, and the error.
local function increase(key, field, by)
  local got = redis.pcall('HINCRBY', key, field, by)
  if type(got) == 'number' then return true end
  local said = got.err or ''
  if string.find(said, 'overflow', 1, true) then return false, 'overflow' end
  if string.find(said, 'not an integer', 1, true) then return false, 'no number' end
  return nil, got
end

-- The instant in milliseconds; whole numbers as text, which Lua would round to 14 digits.
local function milliseconds()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end
local function whole(number) return string.format('%.0f', number) end
