-- Load for wrk: POST requests for 10 000 clients, prepared before anything is timed and sent in
-- turn. After `--` come the path and the body; USER and ADDR in the body become each client's own.
--
--     wrk -s checks.lua http://127.0.0.1:8080 -- /v1/check '{"user":"USER"}'

local CLIENTS = 10000
local requests, turn = {}, 0

function init(args)
  local path, body = args[1], args[2]
  local headers = { ["Content-Type"] = "application/json" }
  for client = 0, CLIENTS - 1 do
    -- 7919 is prime to 10 000: every client has its turn, and neighbours are not neighbours.
    local number = client * 7919 % CLIENTS
    local values = {
      USER = string.format("user-%08d", number),
      ADDR = string.format("10.1.%d.%d", math.floor(number / 250), number % 250 + 1),
    }
    requests[client + 1] = wrk.format("POST", path, headers, (body:gsub("%u%u%u%u", values)))
  end
end

function request()
  turn = turn % CLIENTS + 1
  return requests[turn]
end
