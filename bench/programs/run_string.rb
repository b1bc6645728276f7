# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# Strings made, cut and searched.
def work
  text = Array.new(8000) { |i| "item#{i}=#{i * i}" }.join(";")
  found = text.split(";").count { |pair|
    name, value = pair.split("=")
    name.include?("7") && value.end_with?("9")
  }
  text.upcase.gsub("ITEM", "x").length + found
end

best, result = Array.new(7) {
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  value = work
  [Process.clock_gettime(Process::CLOCK_MONOTONIC) - start, value]
}.min_by(&:first)
printf "%.3f %s\n", best * 1000, result
