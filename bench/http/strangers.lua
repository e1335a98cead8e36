-- Load for wrk: forward-auth for clients of whom none was ever seen before, each from an address of
-- its own. After `--` come the method, the path, the body (unused) and headers; ADDR is the client.

local head, tail
local number = 0

function init(args)
  local headers = {}
  for at = 4, #args do
    local name, value = args[at]:match("^([^:]+): *(.*)$")
    headers[name] = value:gsub("ADDR", "@")
  end
  local text = wrk.format(args[1], args[2], headers)
  -- X-Real-Ip says the same as X-Forwarded-For; only one of the two is read.
  text = text:gsub("X%-Real%-Ip: @\r\n", "")
  head, tail = text:match("^(.-)@(.*)$")
end

function request()
  number = number + 1
  local low, middle = number % 256, math.floor(number / 256) % 256
  local high = math.floor(number / 65536) % 256
  local top = 11 + math.floor(number / 16777216)
  return head .. top .. "." .. high .. "." .. middle .. "." .. low .. tail
end
