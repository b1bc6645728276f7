# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# JSON out and in again.
require "json"
DATA_SET = Array.new(200) { |i| { id: i, name: "name #{i}", tags: ["a", "b", i.to_s], score: i / 4.0 } }

def work
  text = JSON.generate(DATA_SET)
  text.length + JSON.parse(text).length
end

best, result = Array.new(7) {
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  value = work
  [Process.clock_gettime(Process::CLOCK_MONOTONIC) - start, value]
}.min_by(&:first)
printf "%.3f %s\n", best * 1000, result
