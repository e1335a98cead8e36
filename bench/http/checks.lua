-- Load for wrk: requests of 10 000 clients, prepared before anything is timed and sent in turn. After
-- `--` come the method, the path, the body, and headers as `Name: value`; USER and ADDR in body and
-- headers become each client's own.
--
--     wrk -s checks.lua http://127.0.0.1:8080 -- POST /v1/check '{"user":"USER"}'
--     wrk -s checks.lua http://127.0.0.1:8080 -- GET /v1/auth '' 'X-Forwarded-For: ADDR'

local CLIENTS = 10000
local requests, turn = {}, 0

local function prepare(args, number)
  local values = {
    USER = string.format("user-%08d", number),
    ADDR = string.format("10.1.%d.%d", math.floor(number / 250), number % 250 + 1),
  }
  local function own(text)
    return (text:gsub("%u%u%u%u", values))
  end
  local headers = {}
  for at = 4, #args do
    local name, value = args[at]:match("^([^:]+): *(.*)$")
    headers[name] = own(value)
  end
  local body = args[3] ~= "" and own(args[3]) or nil
  return wrk.format(args[1], args[2], headers, body)
end

function init(args)
  for client = 0, CLIENTS - 1 do
    -- 7919 is prime to 10 000: every client has its turn, and neighbours are not neighbours.
    requests[client + 1] = prepare(args, client * 7919 % CLIENTS)
  end
end

function request()
  turn = turn % CLIENTS + 1
  return requests[turn]
end
