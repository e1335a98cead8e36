-- Asks Tidegate whether a request may pass. haproxy.cfg says what the arguments are.
local url, timeout_ms, away = ...
local along = { select(4, ...) }
timeout_ms = assert(tonumber(timeout_ms), "tidegate.lua: the second argument is a number of milliseconds")
assert(away == "open" or away == "closed", "tidegate.lua: the third argument is open or closed")

-- Headers of an answer that belong to the connection by which it came, and not to the client's; the
-- last is for proxies alone.
local own = { ["connection"] = true, ["keep-alive"] = true, ["transfer-encoding"] = true,
              ["content-length"] = true, ["date"] = true, ["x-denied-reason"] = true }

-- HAProxy counts the values of a header from 0.
local function values(of)
  local list, index = {}, 0
  while of ~= nil and of[index] ~= nil do
    list[#list + 1] = of[index]
    index = index + 1
  end
  return list
end

-- Whom the request comes from. The peer is appended to X-Forwarded-For, as proxies do; Tidegate reads
-- that from the right, past trusted addresses only. A peer without an address (a unix socket) leaves
-- nothing but the client's own word, which is not passed on.
local function hops(txn, sent)
  local peer = txn.sf:src()
  if peer == nil or peer == "" then return nil end
  local list = values(sent["x-forwarded-for"])
  list[#list + 1] = peer
  return { table.concat(list, ", ") }
end

-- What Tidegate is told: what HAProxy itself knows of the request, never a client's word for it, and
-- the headers that limits read.
local function question(txn)
  local sent = txn.http:req_get_headers()
  -- Of `OPTIONS *` HAProxy has none.
  local target = txn.sf:pathq()
  if target == nil or target == "" then target = "/" end
  local told = {
    ["x-forwarded-method"] = { txn.sf:method() },
    ["x-forwarded-uri"] = { target },
    ["x-forwarded-for"] = hops(txn, sent),
  }
  local host = values(sent["host"])
  if #host > 0 then told["x-forwarded-host"] = host end
  for _, name in ipairs(along) do
    local list = values(sent[name])
    if #list > 0 then told[name] = list end
  end
  return told
end

-- Whether there was no answer. HAProxy's client then makes one up: 502, 503 or 504, and without the
-- Date that Tidegate puts on all of its own. Tidegate's 503, by contrast, is a decision: its store is
-- away and its limits say `deny`. Whatever else goes wrong may be the client's doing, and opens nothing.
local function is_away(answer)
  local made_up = { [502] = true, [503] = true, [504] = true }
  return made_up[answer.status] and (answer.headers or {})["date"] == nil
end

-- Whether Tidegate does not take this HAProxy for a proxy of its own. That is the operator's to put
-- right, and no client can cause it; to tell a client that it is forbidden would be untrue.
local function is_untrusted(answer, headers)
  return answer.status == 403 and (headers["x-denied-reason"] or {})[1] == "untrusted-proxy"
end

-- One line in ten seconds: a log must not fill up when it is needed most.
local said = 0
local function complain(text)
  local now = core.now().sec
  if now - said >= 10 then
    said = now
    core.Warning(text)
  end
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply { status = status, body = body }
  for name, list in pairs(headers) do
    if not own[name] then
      for _, value in ipairs(list) do reply:add_header(name, value) end
    end
  end
  txn:done(reply)
end

local undecided_headers = {
  ["content-type"] = { "application/problem+json" },
  ["cache-control"] = { "no-store" },
  ["retry-after"] = { "1" },
}
local undecided_body =
  '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",'
  .. '"title":"Service Unavailable","status":503,'
  .. '"detail":"The limiter cannot decide at the moment. Try again in 1 second."}\n'

core.register_action("tidegate", { "http-req" }, function(txn)
  local answer = core.httpclient():get { url = url, headers = question(txn), timeout = timeout_ms }
  if is_away(answer) then
    complain("Tidegate does not answer (" .. answer.status .. "); the limits are " .. away)
    if away == "closed" then refuse(txn, 503, undecided_headers, undecided_body) end
    return
  end
  local headers = {}
  for name, of in pairs(answer.headers or {}) do headers[name] = values(of) end
  if answer.status == 200 then
    txn:set_priv(headers) -- for the other action, below
  elseif is_untrusted(answer, headers) then
    complain("Tidegate does not trust this HAProxy; add its address to client.trusted_proxies there")
    refuse(txn, 503, undecided_headers, undecided_body)
  elseif answer.status ~= nil and answer.status >= 400 then
    refuse(txn, answer.status, headers, answer.body)
  else
    refuse(txn, 503, undecided_headers, undecided_body)
  end
end)

-- In place of what the application says of limits, not beside it.
core.register_action("tidegate", { "http-res" }, function(txn)
  for name, list in pairs(txn:get_priv() or {}) do
    if name:find("^x%-ratelimit") or name:find("^ratelimit") then
      txn.http:res_del_header(name)
      for _, value in ipairs(list) do txn.http:res_add_header(name, value) end
    end
  end
end)
