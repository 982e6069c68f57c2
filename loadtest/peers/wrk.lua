-- Closed loop: sends the requests of a folder in turn, whole as they lie there, and prints one JSON line at the end.
--   wrk -t 1 -c 16 -d 6s -s wrk.lua http://127.0.0.1:8000 -- FOLDER COUNT FIRST
-- FOLDER has the files 0, 1, … COUNT-1; FIRST is the one to begin with. Every reply but a 200 is an error.

local threads = {}

function setup(thread)
   thread:set("number", #threads)
   table.insert(threads, thread)
end

function init(args)
   requests = {}
   count = tonumber(args[2])
   for k = 0, count - 1 do
      local file = assert(io.open(args[1] .. "/" .. k, "rb"))
      requests[k] = file:read("*a")
      file:close()
   end
   -- A thread of its own offset, so that two do not send the same at the same time.
   at = tonumber(args[3]) + number * math.floor(count / 2)
   bad = 0
end

function request()
   local found = requests[at % count]
   at = at + 1
   return found
end

function response(status)
   if status ~= 200 then
      bad = bad + 1
   end
end

function done(summary, latency)
   local bad = 0
   for _, thread in ipairs(threads) do
      bad = bad + thread:get("bad")
   end
   local errors = summary.errors
   io.write(string.format(
      '{"seconds": %.6f, "replies": %d, "not_200": %d, "connect": %d, "read": %d, "write": %d, "timeout": %d, '
         .. '"p50_ms": %.3f, "p99_ms": %.3f, "max_ms": %.3f}\n',
      summary.duration / 1e6, summary.requests, bad, errors.connect, errors.read, errors.write, errors.timeout,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
