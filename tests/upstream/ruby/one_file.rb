# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of one of Ruby's own test files, without its runner, which starts processes and threads. Environment:
# TEST_FILE (from the folder of tests), and STRESS_S if the garbage collector is to run at every chance, for that many
# seconds of each test at most. Prints a line of JSON per test, after "@@ ": what became of it, its name, and the message.
require "json"
require "pp"
require "rbconfig"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"

ROOT = ENV.fetch("TEST_ROOT", "/workspace")
$LOAD_PATH.unshift("#{ROOT}/tool/lib", "#{ROOT}/test/lib")
$LOAD_PATH.push("#{ROOT}/test")
$VERBOSE = false

# Asked for what a sandbox has not: another process, a continuation, an extension of the tests' own.
class NotInASandbox < Exception; end

# What tool/lib/test/unit.rb defines for others beside its runner.
module Test
  module Unit
    class AssertionFailedError < Exception; end
    class PendedError < AssertionFailedError; end
    class OmittedError < PendedError; end

    class Runner
      def self.autorun; end
      def self.runner = self
      def self.synchronize = yield
      def self.output = $stdout
      def self.current_repeat_count = 0
    end

    class << self
      attr_accessor :run_count
    end
  end
end
$LOADED_FEATURES << "#{ROOT}/tool/lib/test/unit.rb"
require "test/unit/testcase"
require "envutil"

module EnvUtil
  def self.invoke_ruby(*, **) = raise(NotInASandbox)
  def invoke_ruby(*, **) = raise(NotInASandbox)
  def self.rubybin = raise(NotInASandbox)
end

class Test::Unit::TestCase
  %i[assert_separately assert_in_out_err assert_ruby_status assert_normal_exit assert_no_memory_leak assert_ractor
     assert_linear_performance].each { |name| define_method(name) { |*, **| raise NotInASandbox } }
end

# There is one user. Tests give his files away before they look at something else.
File.singleton_class.prepend(Module.new do
  def chown(*)
    super
  rescue Errno::EPERM
    0
  end
end)

# Extensions that only tests use, and two that are not there: what needs them is found when it is used.
%w[continuation fiddle -test-/file -test-/iter -test-/memory_view -test-/rb_call_super_kw -test-/time].each do |name|
  $LOADED_FEATURES << "#{name}.rb"
end
module Bug
  def self.const_missing(_) = raise(NotInASandbox)
end
def callcc = raise(NotInASandbox)

MISSING = /a sandbox (cannot start|has no)|Function not implemented|Operation not permitted|no threads/

# The reason of a failure that lies in what a sandbox has not, wherever in the chain of causes it is.
def missing?(error)
  while error
    return true if [NotInASandbox, NotImplementedError, Errno::ENOSYS, ThreadError, SocketError].any? { |kind| kind === error }
    return true if error.message.match?(MISSING)
    error = error.cause
  end
  false
end

# Tests replace methods of JSON's.
RESULT_JSON = JSON.method(:generate)
$report = $stdout.dup
$report.sync = true

def report(result, name, message = nil)
  message &&= message.to_s.dup.force_encoding("UTF-8").scrub("?")[0, 400]
  $report.puts("", "@@ #{RESULT_JSON.call({ result: result.to_s, name:, message: }.compact)}")
end

# A test under stress has had its time.
class HadItsTime < Exception; end

def stressed(&)
  seconds = ENV.fetch("STRESS_S", "").to_f
  return yield if seconds.zero?
  ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  Timeout.timeout(seconds, HadItsTime) do
    GC.stress = true
    yield
  end
rescue Exception
  # A test may have taken the end of its time for the exception that it waits for.
  raise HadItsTime if ends && Process.clock_gettime(Process::CLOCK_MONOTONIC) >= ends

  raise
ensure
  GC.stress = false
end

def outcome_of
  yield
  :pass
rescue HadItsTime
  :cut
rescue Test::Unit::PendedError
  :omitted
rescue SystemExit, SignalException => error
  [missing?(error) ? :missing : :fail, "#{error.class}: #{error.message}"]
rescue Exception => error
  place = error.backtrace.to_a.find { |line| line.include?("/test/") }.to_s.delete_prefix("#{ROOT}/")
  [missing?(error) ? :missing : :fail, "#{error.class}: #{error.message} (#{place})"]
end

def run_test(suite, method)
  outcome_of do
    test = suite.new(method)
    begin
      test.setup
      stressed { test.__send__(method) }
    ensure
      test.teardown
    end
  end
end

file = "#{ROOT}/test/#{ENV.fetch("TEST_FILE")}"
$LOAD_PATH.unshift(File.dirname(file))
Dir.chdir(Dir.mktmpdir)
loaded, message = outcome_of { load file }
report(loaded, "loading", message) unless loaded == :pass
suites = ObjectSpace.each_object(Class).select { |each| each < Test::Unit::TestCase && each.name && !each.name.start_with?("Test::Unit") }
suites.sort_by(&:name).each do |suite|
  suite.public_instance_methods(true).grep(/\Atest_/).map(&:to_s).sort.each do |method|
    next if suite.instance_method(method).owner == Object
    result, message = run_test(suite, method)
    report(result, "#{suite.name}##{method}", message)
  end
end
report(:end, "end")
# At-exit handlers of the tests are no part of them.
exit!(0)
