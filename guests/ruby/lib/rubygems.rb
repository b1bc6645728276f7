# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# A sandbox has no gems to manage: all that there is can be required. This is what libraries ask RubyGems for.
module Gem
  VERSION = "3.5.22"

  class LoadError < ::LoadError; end

  def self.find_files(*) = []
  def self.loaded_specs = {}
end

module Kernel
  private

  def gem(*) = true
end
