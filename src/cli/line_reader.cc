// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/line_reader.h"

#include <histedit.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <cstdio>

namespace sw::cli {

namespace {

constexpr int kHistoryLines = 2000;

// The terminal as it was before a line was edited, for a signal that ends the process meanwhile.
termios terminal_before;

/// Async-signal-safe.
void restore_terminal(int signal) {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// While a line is edited the terminal echoes nothing. Whoever ends the process gets it back as it
/// was.
class TerminalKept {
 public:
  TerminalKept() {
    ::tcgetattr(STDIN_FILENO, &terminal_before);
    for (const int signal : kSignals) ::signal(signal, &restore_terminal);
  }
  ~TerminalKept() {
    for (const int signal : kSignals) ::signal(signal, SIG_DFL);
  }
  TerminalKept(const TerminalKept&) = delete;
  TerminalKept& operator=(const TerminalKept&) = delete;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP, SIGQUIT};
};

class PipeReader final : public LineReader {
 public:
  Line read(const std::string& /*prompt*/) override {
    std::string text;
    int c = std::getc(stdin);
    if (c == EOF) return {};
    for (; c != EOF && c != '\n'; c = std::getc(stdin)) {
      if (text.size() < kLineBytesMax) text += static_cast<char>(c);
    }
    return {.kind = Kind::kLine, .text = std::move(text)};
  }
  bool is_terminal() const override { return false; }
};

class TerminalReader final : public LineReader {
 public:
  explicit TerminalReader(std::filesystem::path history_file)
      : history_file_(std::move(history_file)),
        history_(::history_init(), &::history_end),
        edit_(::el_init("sandbox-workers", stdin, stdout, stderr), &::el_end) {
    HistEvent event = {};
    ::history(history_.get(), &event, H_SETSIZE, kHistoryLines);
    ::history(history_.get(), &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) ::history(history_.get(), &event, H_LOAD, history_file_.c_str());
    ::el_set(edit_.get(), EL_CLIENTDATA, this);
    ::el_set(edit_.get(), EL_PROMPT, &TerminalReader::prompt_of);
    ::el_set(edit_.get(), EL_EDITOR, "emacs");
    ::el_set(edit_.get(), EL_HIST, &::history, history_.get());
    // While a line is edited Ctrl-C is a key like others, so that nothing has to happen in a signal
    // handler.
    ::el_set(edit_.get(), EL_SETTY, "-d", "-isig", nullptr);
    ::el_set(edit_.get(), EL_ADDFN, "sw-interrupt", "Discard the line", &TerminalReader::interrupt);
    ::el_set(edit_.get(), EL_BIND, "^C", "sw-interrupt", nullptr);
    // A Ctrl-D that comes before the terminal has left its line mode arrives as ^@, which quotes
    // the next key unless it is bound.
    ::el_set(edit_.get(), EL_BIND, "^@", "em-set-mark", nullptr);
    ::el_set(edit_.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_set(edit_.get(), EL_BIND, "\t", "ed-insert", nullptr);  // code is indented with it
  }

  ~TerminalReader() override {
    if (history_file_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(history_file_.parent_path(), ignored);
    HistEvent event = {};
    ::history(history_.get(), &event, H_SAVE, history_file_.c_str());
    std::filesystem::permissions(
        history_file_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
        ignored);
  }

  Line read(const std::string& prompt) override {
    prompt_ = prompt;
    interrupted_ = false;
    int length = 0;
    ::el_resize(edit_.get());
    const char* begin = [&] {
      const TerminalKept kept;
      // By itself it shows the prompt first. What is typed in between would be read as a line, in which Ctrl-C is
      // a signal and Ctrl-D no key.
      ::el_set(edit_.get(), EL_PREP_TERM, 1);
      return ::el_gets(edit_.get(), &length);
    }();
    if (interrupted_) {
      std::fputs("^C\n", stdout);
      std::fflush(stdout);
      return {.kind = Kind::kInterrupted, .text = {}};
    }
    if (begin == nullptr || length <= 0) return {};
    std::string text(begin, static_cast<std::size_t>(length));
    if (text.ends_with('\n')) text.pop_back();
    if (text.find_first_not_of(" \t") != std::string::npos) {
      HistEvent event = {};
      ::history(history_.get(), &event, H_ENTER, text.c_str());
    }
    return {.kind = Kind::kLine, .text = std::move(text)};
  }
  bool is_terminal() const override { return true; }

 private:
  static TerminalReader& self_of(EditLine* edit) {
    void* self = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<TerminalReader*>(self);
  }
  static char* prompt_of(EditLine* edit) { return self_of(edit).prompt_.data(); }
  static unsigned char interrupt(EditLine* edit, int /*key*/) {
    self_of(edit).interrupted_ = true;
    return CC_EOF;
  }

  std::filesystem::path history_file_;
  std::unique_ptr<History, decltype(&::history_end)> history_;
  std::unique_ptr<EditLine, decltype(&::el_end)> edit_;
  std::string prompt_;
  bool interrupted_ = false;
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader(const std::filesystem::path& history_file) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    return std::make_unique<PipeReader>();
  // Characters of more than one byte are edited as one.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
    std::setlocale(LC_CTYPE, "C.UTF-8");
  return std::make_unique<TerminalReader>(history_file);
}

}  // namespace sw::cli
