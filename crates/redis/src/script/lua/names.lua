-- Short names: a global is looked up by name at every use, a local is not.
local spread = unpack
local call, try = redis.call, redis.pcall
local unpack, pack = struct.unpack, struct.pack
local byte, sub, rep, find = string.byte, string.sub, string.rep, string.find
local concat = table.concat

-- The one instant at which everything in this call happens.
local now = @NOW@

-- 2^53. Integers below it are exact. It is written where there is no number, and for an instant that
-- is later (the year 2255).
local END = 9007199254740992
