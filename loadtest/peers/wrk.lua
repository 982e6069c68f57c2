-- Closed loop: sends the requests of a folder in turn, whole as they lie there, and prints one JSON line at the end.
--   wrk -t 16 -c 16 -d 8s -s wrk.lua http://127.0.0.1:8000 -- FOLDER COUNT FIRST STEP SECONDS CONNECTIONS LEAD_IN
-- FOLDER has the files 0, 1, … COUNT-1; FIRST is the one to begin with. Each thread has one connection and a share of the
-- files. Connections are opened STEP seconds apart: where sixteen come at once, one of a server's workers that share a
-- socket accepts them all, and the others have nothing to do. Replies count for SECONDS from LEAD_IN after the last one's
-- opening, and their latencies are taken here: wrk's own are of all replies, and those of slow ones are added to ("corrected").

local ffi = require("ffi")
ffi.cdef [[
   typedef struct { long s; long ns; } moment;
   int clock_gettime(int clock, moment *at);
   int usleep(unsigned int us);
]]

local threads = {}
local at = ffi.new("moment")

local function now()
   ffi.C.clock_gettime(1, at)  -- CLOCK_MONOTONIC
   return tonumber(at.s) + tonumber(at.ns) / 1e9
end

function setup(thread)
   thread:set("number", #threads)
   table.insert(threads, thread)
end

function init(args)
   local count, first, step = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
   local connections = tonumber(args[6])
   requests = {}
   for k = number % count, count - 1, connections do
      local file = assert(io.open(args[1] .. "/" .. k, "rb"))
      requests[#requests + 1] = file:read("*a")
      file:close()
   end
   sent = first
   if number > 0 then
      ffi.C.usleep(step * 1e6)
   end
   begins = now() + step * (connections - 1 - number) + tonumber(args[7])
   ends = begins + tonumber(args[5])
   asked, bad, latencies = begins, 0, {}
end

function request()
   sent = sent + 1
   asked = now()
   return requests[sent % #requests + 1]
end

function response(status)
   if status ~= 200 then
      bad = bad + 1
   else
      local moment = now()
      if moment >= begins and moment < ends then
         latencies[#latencies + 1] = string.format("%.6f", moment - asked)
      end
   end
end

function done(summary)
   local latencies, bad = {}, 0
   for _, thread in ipairs(threads) do
      bad = bad + thread:get("bad")
      for _, seconds in ipairs(thread:get("latencies")) do
         latencies[#latencies + 1] = seconds
      end
   end
   local errors = summary.errors
   io.write(string.format(
      '{"replies": %d, "not_200": %d, "connect": %d, "read": %d, "write": %d, "timeout": %d, "latencies_s": [%s]}\n',
      summary.requests - bad, bad, errors.connect, errors.read, errors.write, errors.timeout,
      table.concat(latencies, ", ")))
end
