-- The open layout: keys and values as the documents of earlier systems show them. After the packed
-- layout, whose form it keeps for what has no other.
--
-- The last argument: the price of a unit under each quota and what an empty bucket owes (I7 each), and
-- whether it is a block (B), then for each key its form (B) and, if it is a field of a hash, the field (I2 length, bytes).
--
-- A form brings three functions. fetch(k, q) tells what is under a key: nothing (false), a value that
-- also goes into the reply, 0 for what is of another type, or an error of the server's. enter(p, q,
-- value, k) fills the place from it, or tells by false that it is not of this form. write(p, q, k)
-- writes the place, or tells by false that it is as good as new and nothing was written.
local format, match = string.format, string.match
local floor, ceil, insert = math.floor, math.ceil, table.insert

local PACKED, MILLIS, NANOS, SET, WINDOW = 0, 1, 2, 3, 4

-- A quota: 10 price, 13 what an empty bucket owes, 15 whether it is a block. Where there is a queue, full
-- is more than that.
local form_of, field_of = {}, {}
do
  local forms, at = ARGV[#ARGV], 1
  for i = 1, quota_count do
    local q, block = quotas[i]
    q[10], q[13], block, at = unpack('<I7I7B', forms, at)
    q[15] = block == 1
  end
  for k = 1, key_count do
    form_of[k], at = unpack('<I1', forms, at)
    if form_of[k] == WINDOW then
      local length
      length, at = unpack('<I2', forms, at)
      field_of[k] = sub(forms, at, at + length - 1)
      at = at + length
    end
  end
end

-- A whole number up to 2^53 of at most 16 digits.
local function whole(text)
  if #text > 16 or not match(text, '^%d+$') then return nil end
  local number = tonumber(text)
  if number <= END then return number end
end

-- A decimal number as C and Lua print it.
local function decimal(text)
  if #text > 32 then return nil end
  if match(text, '^%-?%d+%.?%d*$') or match(text, '^%-?%d+%.?%d*e[-+]%d+$') then
    return tonumber(text)
  end
end

-- An instant in nanoseconds of up to 19 digits, in microseconds; the next where it lies between two.
local function whole_nanos(text)
  if #text > 19 or not match(text, '^%d+$') then return nil end
  local micros, rest = 0, text
  if #text > 3 then micros, rest = tonumber(sub(text, 1, -4)), sub(text, -3) end
  if tonumber(rest) > 0 then micros = micros + 1 end
  if micros <= END then return micros end
end

-- What a command reads; 0 where the key is of another type.
local function read(...)
  local value = try(...)
  if type(value) == 'table' and value.err and find(value.err, 'WRONGTYPE', 1, true) then return 0 end
  return value
end

-- Lets a key go when its state is as good as new.
local function expire(key, fresh)
  local how, ms = @EXPIRE:fresh@
  call(how == 'PXAT' and 'PEXPIREAT' or 'PEXPIRE', key, ms)
end

-- Calls a command on a key with many arguments; Lua passes but so many at once.
local function call_each(command, key, arguments)
  for from = 1, #arguments, 1000 do
    local to = from + 999
    if to > #arguments then to = #arguments end
    call(command, key, spread(arguments, from, to))
  end
end

local fetch, enter_form, write = {}, {}, {}
