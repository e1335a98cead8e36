-- The program: everything but the keys, in one string.
--
--   I2 quotas  I2 classes  I2 shapes  I2 runs
--   quota:     B kind  I6 id  I7 full  I7 over  I7 pace  I7 more  I7 tick
--              and, where the kind has 16 more, I7 mark  I7 whole; of a calendar window, I7 for each start
--   class:     I2 length, then I2 quota for each            the places of a key
--   keys:      I2 class for each key, unless there is one class alone
--   shape:     I2 keys  B simple  I2 asks, then for each ask
--              B key  B operation  I2 offset  I2 quota  I3 shadow  I7 need  I7 units  I7 at
--              and, where it gives back, I7 until  I7 mark  I7 behind; in its turn, I7 by
--   run:       I2 shape  B repeated  I2 count, then I2 for each key: of each request, or once if repeated
--
-- Quotas, shapes and offsets are counted from 1, keys and their classes from 0. A *place* is a
-- bucket: one quota under one key; the places of a key lie side by side in its class's order.
local program = ARGV[1]
local quota_count, class_count, shape_count, run_count, pos = unpack('<I2I2I2I2', program)

-- Kinds of quotas. A plain token bucket remembers nothing for giving back. One that lends is one that
-- is refundable, and remembers more.
local TOKENS, TOKENS_REFUNDABLE, FIXED, SLIDING, LOG, TOKENS_LENT, CALENDAR = 1, 2, 3, 4, 5, 6, 7

-- A quota: 1 kind, 2 id, 3 full (the room of a bucket as good as new), 4 over (how far below empty a
-- forced charge may go), 5 drain or period, 6 ahead_max, aligned or part, 7 tick, 8 the most room
-- that a charge can begin with, 9 the present tick; 14 whether it lends; 16 the mark that its records
-- end with, if they do, and what that says: 17 the leading bits of the whole and 18 what to multiply
-- them by, 21 the parts of a tick; and if it scales, 19 and 20 the same of the whole rounded up. Of a
-- calendar window, 6 tells whether there are no windows but those between the starts, which are 24; 22
-- and 23 are the start and the end of the window around now, unless there is none.
--
-- Room is counted in what a charge takes: units of debt for a token bucket, units of cost else.
local quotas = {}

-- The end of the calendar window around an instant, and its start; nil if the quota knows none there.
local function window_around(q, at)
  local starts = q[24]
  for i = 1, 3 do
    if at >= starts[i] and at < starts[i + 1] then return starts[i + 1], starts[i] end
  end
  if q[6] == 0 then
    local start = at - at % q[5]
    local ending = start + q[5]
    if ending > END then ending = END end
    return ending, start
  end
end

-- Which kinds there are: what the others need is not even made.
local has = {false, false, false, false, false}
local has_lent = false
for i = 1, quota_count do
  local kind, id, full, over, pace, more, tick
  kind, id, full, over, pace, more, tick, pos = unpack('<I1I6I7I7I7I7I7', program, pos)
  local mark, whole
  if kind >= 16 then
    kind = kind - 16
    mark, whole, pos = unpack('<I7I7', program, pos)
  end
  local lends = kind == TOKENS_LENT
  if lends then kind, has_lent = TOKENS_REFUNDABLE, true end
  local most, present = full, now
  if tick > 1 then
    local past = now % tick
    present = (now - past) / tick
    -- Between two ticks, a debt is read at the one before and begun at the one after.
    if past > 0 and kind <= TOKENS_REFUNDABLE then most = full - pace end
  end
  has[kind] = true
  quotas[i] = {kind, id, full, over, pace, more, tick, most, present}
  local q = quotas[i]
  q[21] = 0
  if kind == CALENDAR then
    local starts = {}
    starts[1], starts[2], starts[3], starts[4], pos = unpack('<I7I7I7I7', program, pos)
    q[24] = starts
    q[23], q[22] = window_around(q, now)
  end
  if lends then q[14] = true end
  if mark then
    q[16], q[21] = mark, mark % 524288
    local of = (mark - q[21]) / 2097152
    of = of - of % 1
    local shift = of % 32
    q[17], q[18] = (of - shift) / 32, 2 ^ shift
    if whole > 0 then
      shift = whole % 32
      q[19], q[20] = (whole - shift) / 32, 2 ^ shift
    end
  end
end

-- Classes: the quotas under a key.
local classes = {}
for c = 1, class_count do
  local class, n = {}
  n, pos = unpack('<I2', program, pos)
  for i = 1, n do
    local q
    q, pos = unpack('<I2', program, pos)
    class[i] = quotas[q]
  end
  classes[c] = class
end

local key_count = #KEYS
local class_pos = pos
if class_count > 1 then pos = pos + key_count * 2 end

local function class_of(k)
  if class_count == 1 then return 1 end
  local low, high = byte(program, class_pos + k * 2 - 2, class_pos + k * 2 - 1)
  return low + high * 256 + 1
end

-- An ask: 1 key, 2 operation, 3 offset, 4 quota, 5 shadow (0, or 1 more than the limit), 6 need (the
-- room that must be there; 0 asks nothing), 7 units to take, 8 when they were taken, or what a limit
-- with a block is known by (0 where a refusal charges none), 9 what else a receipt says: until when they were owed, what had been credited then, what of it lies behind; and
-- until when they come back, where they do so in their turn and not in any case.
local LOOK, TAKE, FORCE, GIVE_BACK, DROP, SWITCH, RETURN, BLOCK = 0, 1, 2, 3, 4, 5, 6, 7
-- Alone in its call, which then writes nothing.
local INSPECT = 8

local shapes = {}
local has_switch, inspects = false, false
for s = 1, shape_count do
  local keys, simple, asks
  keys, simple, asks, pos = unpack('<I2BI2', program, pos)
  local shape, outside = {}, false
  for i = 1, asks do
    local key, op, offset, q, shadow, need, units, at
    key, op, offset, q, shadow, need, units, at, pos = unpack('<BBI2I2I3I7I7I7', program, pos)
    if op == SWITCH then has_switch = true end
    if op == INSPECT then inspects = true end
    if quotas[q][24] and not quotas[q][23] and op ~= DROP and op ~= INSPECT and op ~= SWITCH then
      outside = true
    end
    local receipt
    if op == GIVE_BACK then
      local till, mark, behind
      till, mark, behind, pos = unpack('<I7I7I7', program, pos)
      receipt = {till, mark, behind}
    elseif op == RETURN then
      local till, mark, behind, by
      till, mark, behind, by, pos = unpack('<I7I7I7I7', program, pos)
      receipt = {till, mark, behind, by}
    end
    shape[i] = {key + 1, op, offset, quotas[q], shadow, need, units, at, receipt}
  end
  shapes[s] = {keys, simple == 1, shape, outside}
end
