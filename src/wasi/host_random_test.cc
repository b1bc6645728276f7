// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Write-back against a real folder that somebody else changes at the same time.
// SW_WRITE_BACK_ROUNDS=10000 for a long run, SW_WRITE_BACK_SEED to repeat one.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "wasi/host_test_support.h"
#include "wasi/tree_state.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kRounds = 20;
constexpr int kStepsInTree = 12;
constexpr int kStepsBeside = 40;

unsigned from_environment(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::size_t pick(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  bool one_in(std::size_t count) { return pick(count) == 0; }

  std::string name() { return std::string(1, static_cast<char>('a' + pick(4))); }
  std::string path() {
    std::string path = name();
    for (std::size_t more = pick(3); more > 0; --more) path += "/" + name();
    return path;
  }
  /// Half of them lead up; some lead out.
  std::string target() {
    std::string target = one_in(20) ? "/" : "";
    for (std::size_t parts = 1 + pick(5); parts > 0; --parts)
      target += (one_in(3) ? ".." : name()) + "/";
    return target + (one_in(2) ? "." : name());
  }
  /// Tells whose it is, and whether it is whole.
  std::string content(const std::string& whose) {
    return fmt::format("{}:{};", whose, std::string(pick(5000), static_cast<char>('a' + pick(26))));
  }

 private:
  std::mt19937 random_;
};

/// What somebody else does in the folder. Never through a link, so that it stays there.
class Neighbour {
 public:
  enum class Kind : std::uint8_t {
    kAbsent,
    kMild,  ///< files only, so that no link can lead elsewhere because of it
    kWild,
  };
  Neighbour(const fs::path& folder, unsigned seed, Kind kind)
      : folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        dice_(seed),
        kind_(kind) {}

  void run() {
    for (int i = 0; i < kStepsBeside; ++i) step();
  }

  void step() {
    const std::string path = dice_.path();
    const UniqueFd parent = open_beneath(folder_.get(), parent_path(path), O_PATH | O_DIRECTORY);
    if (!parent) return;
    const std::string name = name_of(path);
    const std::size_t what = dice_.pick(kind_ == Kind::kMild ? 4 : 9);
    if (what <= 1) return write(parent.get(), name);
    if (what == 2) return replace(parent.get(), name);
    if (what == 3) return remove_file(parent.get(), name);
    if (what == 4) ::mkdirat(parent.get(), name.c_str(), 0777);
    if (what == 5) ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
    if (what == 6) ::renameat(parent.get(), name.c_str(), parent.get(), dice_.name().c_str());
    if (what == 7) ::symlinkat(dice_.target().c_str(), parent.get(), name.c_str());
    if (what == 8) ::mkfifoat(parent.get(), name.c_str(), 0600);
  }

 private:
  void write(int parent, const std::string& name) {
    const UniqueFd fd(::openat(parent, name.c_str(),
                               O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    const std::string text = dice_.content("other");
    if (!fd || ::ftruncate(fd.get(), 0) != 0) return;
    (void)!::pwrite(fd.get(), text.data(), text.size(), 0);
  }
  void replace(int parent, const std::string& name) {
    write(parent, "mine");
    ::renameat(parent, "mine", parent, name.c_str());
  }
  static void remove_file(int parent, const std::string& name) {
    struct stat status = {};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      return;
    ::unlinkat(parent, name.c_str(), 0);
  }

  UniqueFd folder_;
  Dice dice_;
  Kind kind_;
};

class Round {
 public:
  Round(const fs::path& parent, unsigned seed)
      : parent_(parent), folder_(parent / "folder"), dice_(seed), seed_(seed) {}

  /// What is wrong; empty if nothing is.
  std::string run() {
    make_folders();
    HostFolder loaded = HostFolder::load(folder_, {}, 1).value();
    const auto before = listing(parent_);
    const auto led_out = links_that_lead_out();
    change_tree(loaded);
    const auto kind = static_cast<Neighbour::Kind>(dice_.pick(3));
    auto done = write_back(loaded, kind);
    const auto after = listing(parent_);
    check_outside(before, after);
    check_files(before, after, kind);
    check_temporaries(after, done);
    if (kind != Neighbour::Kind::kWild) check_links(led_out, done);
    if (kind == Neighbour::Kind::kAbsent) check_all_or_nothing(loaded, before, after, done);
    return std::move(wrong_);
  }

  // over all rounds: the test must not pass because nothing is ever written
  static std::size_t written;
  static std::size_t conflicts;
  static std::size_t refusals;

 private:
  using Listing = std::map<std::string, std::string>;
  using Done = Result<HostFolder::WriteBack>;

  void make_folders();
  void change_tree(HostFolder& loaded);
  Done write_back(HostFolder& loaded, Neighbour::Kind kind);
  std::map<std::string, std::string> links_that_lead_out();
  void check_outside(const Listing& before, const Listing& after);
  void check_files(const Listing& before, const Listing& after, Neighbour::Kind kind);
  void check_temporaries(const Listing& after, const Done& done);
  void check_links(const std::map<std::string, std::string>& led_out, const Done& done);
  void check_all_or_nothing(HostFolder& loaded, const Listing& before, const Listing& after,
                            const Done& done);
  void wrong(const std::string& what) { wrong_ += what + "\n"; }

  fs::path parent_;
  fs::path folder_;
  Dice dice_;
  unsigned seed_;
  std::string wrong_;
};

std::size_t Round::written = 0;
std::size_t Round::conflicts = 0;
std::size_t Round::refusals = 0;

void Round::make_folders() {
  for (const char* name : {"folder", "outside", "outside/a", "a"})
    fs::create_directory(parent_ / name);
  for (const char* name : {"secret", "outside/b", "a/b"})
    std::ofstream(parent_ / name) << "outside";
  for (int i = 0; i < 14; ++i) {
    const fs::path path = folder_ / dice_.path();
    std::error_code taken;
    const std::size_t what = dice_.pick(10);
    if (!fs::is_directory(fs::symlink_status(path.parent_path(), taken)) ||
        fs::exists(fs::symlink_status(path, taken))) {
      continue;
    }
    // The way there may lead through a link.
    if (fs::weakly_canonical(path.parent_path()) != path.parent_path()) continue;
    if (what < 4) fs::create_directory(path, taken);
    else if (what < 7) std::ofstream(path) << dice_.content("old");
    else if (what < 9) fs::create_symlink(dice_.target(), path, taken);
    else if (dice_.one_in(4)) ::mkfifo(path.c_str(), 0600);
    if (what >= 4 && what < 7 && dice_.one_in(4))
      ::chmod(path.c_str(), dice_.one_in(3) ? 0444 : 06755);
  }
}

void Round::change_tree(HostFolder& loaded) {
  const FixedClocks clocks;
  FileSystem files(standard_layout().build(), clocks, TreeLimits{});
  files.mount(kWorkspaceMount, loaded.tree());
  const auto path = [this] { return "/workspace/" + dice_.path(); };
  for (int i = 0; i < kStepsInTree; ++i) {
    switch (dice_.pick(6)) {
      case 0: (void)files.make_directories(path()); break;
      case 1: (void)files.remove_all(path()); break;
      case 2: (void)files.rename(path(), path()); break;
      case 3: (void)files.symlink(dice_.target(), path()); break;
      default:
        (void)files.write_file(path(), as_bytes(dice_.content("new")), WriteMode::kReplace);
        break;
    }
  }
}

Round::Done Round::write_back(HostFolder& loaded, Neighbour::Kind kind) {
  std::thread beside;
  std::atomic<bool> begun = false;
  Neighbour neighbour(folder_, seed_ + 1, kind);
  if (kind != Neighbour::Kind::kAbsent) {
    beside = std::thread([&] {
      begun = true;
      begun.notify_one();
      neighbour.run();
    });
    begun.wait(false);
  }
  Done done = loaded.write_back();
  if (beside.joinable()) beside.join();
  if (done.ok()) written += done->written.size();
  if (done.ok()) refusals += done->refused.size();
  else ++conflicts;
  return done;
}

std::map<std::string, std::string> Round::links_that_lead_out() {
  std::map<std::string, std::string> found;
  const UniqueFd folder(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const HostEntries entries = scan_host_folder(folder.get()).value();
  for (const auto& [path, entry] : entries) {
    if (entry.is_link() && kernel_leaves(folder.get(), path)) found[path] = entry.target;
  }
  return found;
}

bool is_outside(const std::string& path) {
  return path != "folder" && !path.starts_with("folder/");
}

void Round::check_outside(const Listing& before, const Listing& after) {
  for (const auto& [path, line] : before) {
    if (!is_outside(path)) continue;
    const auto now = after.find(path);
    if (now == after.end() || now->second != line)
      wrong("outside the folder, this changed: " + path);
  }
  for (const auto& [path, line] : after) {
    if (is_outside(path) && !before.contains(path))
      wrong("outside the folder, this was made: " + path);
  }
}

/// Each file is whole, and none that is new has a special bit. What somebody else truncates and
/// writes in two steps may be seen, but not at the end.
void Round::check_files(const Listing& before, const Listing& after, Neighbour::Kind kind) {
  static const std::regex kWhole("(old|new|other):(.)\\2*;|(old|new|other):;");
  for (const auto& [path, line] : after) {
    const fs::path file = parent_ / path;
    if (is_outside(path) || !fs::is_regular_file(fs::symlink_status(file))) continue;
    const std::string content = read_text_file(file).value();
    if (!std::regex_match(content, kWhole)) wrong("not whole: " + path);
    struct stat status = {};
    if (::lstat(file.c_str(), &status) != 0 || !content.starts_with("new:")) continue;
    if ((status.st_mode & 07000) != 0) wrong("a file of the run has special bits: " + path);
    const auto old = before.find(path);
    if (kind == Neighbour::Kind::kAbsent && old != before.end() &&
        static_cast<mode_t>(std::stoul(old->second)) == (S_IFREG | 0444)) {
      wrong("a read-only file was replaced: " + path);
    }
  }
}

void Round::check_temporaries(const Listing& after, const Done& done) {
  std::string named = done.ok() ? "" : done.error().message;
  if (done.ok()) named = fmt::format("{}", fmt::join(done->left, ";"));
  for (const auto& [path, line] : after) {
    const std::string name = name_of(path);
    if (is_temporary_name(name) && named.find(name) == std::string::npos)
      wrong("left and not named: " + path);
  }
}

void Round::check_links(const std::map<std::string, std::string>& led_out, const Done& done) {
  for (const auto& [path, target] : links_that_lead_out()) {
    const auto old = led_out.find(path);
    if (old != led_out.end() && old->second == target) continue;
    wrong(fmt::format("{} -> {} leads out ({})", path, target,
                      done.ok() ? "written" : done.error().message));
  }
}

/// Nobody else was there: the folder is as it was, or as the tree is, except for what was refused
/// by name.
void Round::check_all_or_nothing(HostFolder& loaded, const Listing& before, const Listing& after,
                                 const Done& done) {
  if (!done.ok()) {
    if (before != after)
      wrong("not as before, although nothing was to be written: " + done.error().message);
    return;
  }
  for (const Change& change : loaded.changes()) {
    const bool named =
        std::any_of(done->refused.begin(), done->refused.end(), [&](const std::string& reason) {
          const std::string path = reason.substr(0, reason.find_first_of(" :"));
          return change.path == path || change.path.starts_with(path + "/");
        });
    if (!named) wrong("not written and not named: " + change.path);
  }
  HostFolder again = HostFolder::load(folder_, {}, 1).value();
  const auto on_host = TreeState::of(*again.tree());
  std::size_t differences = on_host.changes_to(TreeState::of(*loaded.tree())).size();
  if (differences != loaded.changes().size()) wrong("the folder is not what it is said to be");
}

/// Each round in a folder of its own.
std::string run_rounds(const fs::path& parent, unsigned seed) {
  const unsigned rounds = from_environment("SW_WRITE_BACK_ROUNDS", kRounds);
  for (unsigned i = 0; i < rounds; ++i) {
    const fs::path place = parent / std::to_string(i);
    fs::create_directory(place);
    std::string wrong = Round(place, seed + 2 * i).run();
    if (!wrong.empty())
      return fmt::format("{}SW_WRITE_BACK_SEED={} SW_WRITE_BACK_ROUNDS=1", wrong, seed + 2 * i);
    fs::remove_all(place);
  }
  if (rounds < kRounds) return "";
  const bool lively =
      Round::written > 0 && Round::conflicts > 0 && (Round::refusals > 0 || rounds < 10 * kRounds);
  return lively ? ""
                : fmt::format("too little happened: {} {} {}", Round::written, Round::conflicts,
                              Round::refusals);
}

class RandomWriteBack : public ::testing::Test {
 protected:
  RandomWriteBack()
      : parent_(TemporaryDirectory::create(fs::temp_directory_path(), "sw-random-").value()),
        seed_(from_environment("SW_WRITE_BACK_SEED", std::random_device()())) {
    RecordProperty("seed", std::to_string(seed_));
  }

  TemporaryDirectory parent_;
  unsigned seed_;
};

TEST_F(RandomWriteBack, KeepsItsPromisesWhileSomebodyElseChangesTheFolder) {
  EXPECT_EQ(run_rounds(parent_.path(), seed_), "") << "seed " << seed_;
}

TEST_F(RandomWriteBack, KeepsThemForAnOrdinaryUserToo) {
  fs::permissions(parent_.path(), fs::perms::all);
  EXPECT_EQ(in_child([&]() -> std::string {
              ::umask(022);
              return become_ordinary_user() ? run_rounds(parent_.path(), seed_) : "setresuid";
            }),
            "")
      << "seed " << seed_;
}

}  // namespace
}  // namespace sw::wasi
