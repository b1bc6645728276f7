# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# The last thing of a boot: the libraries that are to cost nothing in a run. `modules` is what the manifest says.
modules.each { |name| require name }
$LOAD_PATH.push("/workspace")

# Ruby asks the kernel to carry out what no program can catch, and there is none here. The name of the file keeps the
# method out of errors.
eval <<~'RUBY', nil, "<internal:process>"
  Module.new do
    send_signal = Process.method(:kill)
    leave = Process.method(:exit!)
    numbers = Signal.list
    deadly = numbers.values_at("KILL", "SEGV", "BUS", "ILL", "FPE")
    itself = [0, Process.pid] # 0: the group, where it is alone
    Process.define_singleton_method(:kill) do |signal, *processes|
      number = Integer === signal ? signal : numbers[signal.to_s.delete_prefix("SIG")]
      next send_signal.call(signal, *processes) unless number && processes.any? && processes.all?(Integer)
      raise Errno::ESRCH if (processes - itself).any?
      leave.call(128 + number) if deadly.include?(number)
      number == 0 ? processes.size : send_signal.call(signal, *processes.map { |process| process == 0 ? itself.last : process })
    end
  end
RUBY
