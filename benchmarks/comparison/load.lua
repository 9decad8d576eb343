-- What wrk sends: the request bodies of a file, one a line, over and over.
-- Arguments: the file, and the number of the body to begin with.

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

-- one line of JSON behind wrk's own words; wrk counts in microseconds
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nresult {"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d, "bad_status": %d, '
      .. '"connect": %d, "read": %d, "write": %d, "timeout": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect, errors.read, errors.write, errors.timeout
  ))
end
