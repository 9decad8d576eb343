-- Script for wrk that sends the request bodies of a file in turn.
-- Arguments: file with one body per line, and index of the first body.

local requests, next_request = {}, 0

function init(arguments)
  local headers = { ["Content-Type"] = "application/json" }
  for body in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("POST", "/fill-mask", headers, body)
  end
  next_request = tonumber(arguments[2])
end

function request()
  next_request = next_request % #requests + 1
  return requests[next_request]
end

-- prints one line of JSON after wrk's own output, with times in microseconds
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nresult {"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d, "bad_status": %d, '
      .. '"connect": %d, "read": %d, "write": %d, "timeout": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect, errors.read, errors.write, errors.timeout
  ))
end
