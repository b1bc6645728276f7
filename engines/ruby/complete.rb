# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# Is the source in $SOURCE a whole cell, or does it want more lines? Runs in an interpreter of its own; its value is the
# answer.
require "ripper"

CUT_SHORT = /unexpected end-of-input|unterminated|meets end of file|can't find string/

def wants_more?(source)
  checker = Class.new(Ripper) do
    attr_reader :cut_short

    def on_parse_error(message)
      @cut_short = true if message.match?(CUT_SHORT)
    end
    alias_method :compile_error, :on_parse_error
  end.new(source)
  checker.parse
  return checker.cut_short if checker.error?

  # A last line that an operator, a dot or a comma ends goes on.
  source.match?(/(\\|\|\||&&|,|\.)\s*\z/)
end

!wants_more?(ENV.fetch("SOURCE"))
