-- Load for wrk: clients of whom none was ever seen before, in no order, each with an address of its
-- own. After `--` come the method, the path, the body (unused) and headers; ADDR is the client.

local RANGE = 16777216 -- 2^24: three octets
local STEP = 10368889 -- odd, so that every number of the range has its turn before any comes again

local head, tail
local number = 0

function init(args)
  local headers = {}
  for at = 4, #args do
    local name, value = args[at]:match("^([^:]+): *(.*)$")
    headers[name] = value:gsub("ADDR", "@")
  end
  head, tail = wrk.format(args[1], args[2], headers):match("^(.-)@(.*)$")
end

function request()
  number = number + 1
  local drawn = number * STEP % RANGE
  local low, middle = drawn % 256, math.floor(drawn / 256) % 256
  local high, top = math.floor(drawn / 65536), 11 + math.floor(number / RANGE)
  return head .. top .. "." .. high .. "." .. middle .. "." .. low .. tail
end
