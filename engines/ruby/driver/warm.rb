# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# Walks the usual paths once, so that no run is the first to. In a method of a module without a name: what it sets, `$~`
# too, must not be there in programs.
Module.new do
  def self.walk
    puts "warm", 1, nil
    print "a", "b\n"
    p [1, "two", :three, 4.0, nil]
    $stderr.puts "to stderr"
    warn "a warning"
    printf("%05d %.3f %s\n", 42, 3.14159, "x")
    greeting = "Hello, #{ENV.fetch("NAME", "world")}!"
    [3, 1, 2].sort.map { |n| n * n }.select(&:odd?).sum
    { "a" => 1, b: [1, 2.5, nil, true] }.map { |key, value| [key.to_s, value] }.to_h
    "some words here".split.group_by(&:length).transform_values(&:sort)
    begin
      raise ArgumentError, "for the warmth"
    rescue => error
      error.backtrace
    end
    JSON.parse(JSON.generate({ "a" => [1, 2, { "b" => nil }] }))
    Time.now.strftime("%Y-%m-%d %H:%M:%S")
    "aXbX".gsub(/X/) { |found| found.downcase }
    require "set"
    Set[1, 2].include?(2)
    [1, 2, 3].each_slice(2).to_a
    numbers = [1, 2].each
    numbers.next
    { greeting: greeting, sum: (0...10).sum }
  end
end.walk
