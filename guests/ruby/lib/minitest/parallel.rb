# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# minitest's way to run tests beside one another, without threads: one after the other, at once.
module Minitest
  module Parallel
    class Executor
      attr_reader :size

      def initialize(size)
        @size = size
      end

      def start; end

      def <<(work)
        suite, method, reporter = work
        reporter.prerecord(suite, method)
        reporter.record(Minitest.run_one_method(suite, method))
      end

      def shutdown; end
    end

    module Test
      def _synchronize = yield

      module ClassMethods
        def run_one_method(suite, method, reporter)
          Minitest.parallel_executor << [suite, method, reporter]
        end

        def test_order = :parallel
      end
    end
  end
end
