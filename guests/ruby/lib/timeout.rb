# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# Timeout without a thread: the host interrupts the program when the first of the pending times has come, and what is
# due is raised right where it is then. (Ruby's own keeps a thread for that.) `wake_after` is the driver's, which calls
# `ring`.
module Timeout
  VERSION = "0.4.1"

  # Goes through `rescue => error` on its way to its own `timeout`.
  class ExitException < Exception # :nodoc:
    def exception(*) = self
  end

  class Error < RuntimeError
    def self.handle_timeout(message)
      raise self, message
    end
  end

  Request = Struct.new(:at, :error, :message)
  private_constant :Request

  @requests = []

  class << self
    # :nodoc:
    def ring
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      due = @requests.select { |request| request.at <= now }.min_by(&:at)
      @requests.delete_if { |request| request.equal?(due) }
      arm
      raise due.error, due.message if due
    end

    # :nodoc:
    def limit(seconds, error, message)
      request = Request.new(Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds, error, message)
      @requests << request
      arm
      begin
        yield seconds
      ensure
        @requests.delete_if { |each| each.equal?(request) }
        arm
      end
    end

    private

    def arm
      first = @requests.min_by(&:at)
      wake_after(first && first.at - Process.clock_gettime(Process::CLOCK_MONOTONIC))
    end
  end

  def timeout(sec, klass = nil, message = nil, &block)
    return yield(sec) if sec.nil? || sec.zero?

    message ||= "execution expired"
    return Timeout.limit(sec, klass, message, &block) if klass

    exit_exception = ExitException.new(message)
    begin
      Timeout.limit(sec, exit_exception, message, &block)
    rescue ExitException => raised
      raise unless raised.equal?(exit_exception)
      Error.handle_timeout(message)
    end
  end
  module_function :timeout
  public :timeout
end
