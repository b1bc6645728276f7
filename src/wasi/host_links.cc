// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_links.h"

#include <algorithm>
#include <utility>

#include "sandbox_workers/wasi/tree.h"

namespace sw::wasi {

struct LinkModel::Place {
  enum class Kind : std::uint8_t { kFolder, kLink, kOther };
  Kind kind = Kind::kFolder;
  bool opaque = false;
  std::string target;
  Place* parent = nullptr;
  std::string path;
  std::map<std::string, std::unique_ptr<Place>, std::less<>> children;
};

LinkModel::LinkModel() : root_(std::make_unique<Place>()) {}
LinkModel::~LinkModel() = default;

LinkModel::LinkModel(const HostEntries& entries) : LinkModel() {
  for (const auto& [path, entry] : entries) {
    Place& here = place(path);
    here.opaque = entry.opaque;
    here.target = entry.target;
    here.kind = entry.is_directory() ? Place::Kind::kFolder
                : entry.is_link()    ? Place::Kind::kLink
                                     : Place::Kind::kOther;
  }
}

LinkModel::Place* LinkModel::find(std::string_view path) const {
  Place* at = root_.get();
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    const auto child = at->children.find(name);
    if (child == at->children.end()) return nullptr;
    at = child->second.get();
  }
  return at;
}

LinkModel::Place& LinkModel::place(const std::string& path) {
  Place* const parent = find(parent_path(path));
  auto fresh = std::make_unique<Place>();
  fresh->parent = parent;
  fresh->path = path;
  return *(parent->children[name_of(path)] = std::move(fresh));
}

void LinkModel::put(const std::string& path, FileType type, const std::string& target) {
  // Somebody may have removed the folder on the host meanwhile; then the change is refused
  // elsewhere.
  if (find(parent_path(path)) == nullptr) return;
  Place& here = place(path);
  here.target = target;
  here.kind = type == FileType::kDirectory      ? Place::Kind::kFolder
              : type == FileType::kSymbolicLink ? Place::Kind::kLink
                                                : Place::Kind::kOther;
}

void LinkModel::remove(const std::string& path) {
  if (Place* const parent = find(parent_path(path))) parent->children.erase(name_of(path));
}

std::vector<std::string> LinkModel::links() const {
  std::vector<std::string> found;
  std::vector<const Place*> waiting = {root_.get()};
  while (!waiting.empty()) {
    const Place& place = *waiting.back();
    waiting.pop_back();
    if (place.kind == Place::Kind::kLink) found.push_back(place.path);
    for (const auto& [name, child] : place.children) waiting.push_back(child.get());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Resolves one link. Where nothing is, or a file, the path continues as if through new folders.
class LinkModel::Walk {
 public:
  Walk(const Place& link, std::size_t& steps_left, Resolution& resolution)
      : at_(link.parent), steps_left_(steps_left), resolution_(resolution) {
    follow(link);
  }

  void run() {
    while (resolution_.escape == Escape::kNone && next_ < rest_.size()) {
      const std::size_t end = std::min(rest_.find('/', next_), rest_.size());
      const std::string name = rest_.substr(next_, end - next_);
      next_ = end + 1;
      spend(1);
      if (name == "..") go_up();
      else if (!name.empty() && name != ".") go_down(name);
    }
  }

 private:
  void spend(std::size_t steps) {
    if (steps_left_ < steps) stop(Escape::kPossible, "there are too many links to follow them all");
    steps_left_ -= std::min(steps, steps_left_);
  }

  void stop(Escape escape, std::string_view problem) {
    resolution_.escape = escape;
    resolution_.problem = problem;
  }
  void stop_at_unknown(std::string_view problem) {
    stop(dangles_ ? Escape::kPossible : Escape::kUnknown, problem);
  }
  void lead_out() {
    stop(dangles_ ? Escape::kPossible : Escape::kCertain, "leads out of the folder");
  }

  void follow(const Place& link) {
    if (link.opaque) stop_at_unknown("leads through a link that cannot be read");
    else if (link.target.empty() || link.target.front() == '/') lead_out();
    else if (++resolution_.links_followed > kSymlinksFollowedMax)
      stop(Escape::kPossible, "leads through too many links");
    if (resolution_.escape != Escape::kNone) return;
    std::string rest = link.target;
    if (next_ < rest_.size()) rest.append("/").append(rest_, next_);
    rest_ = std::move(rest);
    next_ = 0;
    spend(rest_.size() / 256);
  }

  void go_up() {
    if (unknown_ > 0) --unknown_;
    else if (at_->parent != nullptr) at_ = at_->parent;
    else lead_out();
  }

  void go_down(const std::string& name) {
    if (unknown_ > 0) {
      ++unknown_;
      return;
    }
    if (at_->opaque) {
      stop_at_unknown("leads through a folder that cannot be read");
      return;
    }
    resolution_.visited.push_back(at_->path.empty() ? name : at_->path + "/" + name);
    const auto child = at_->children.find(name);
    const bool is_there = child != at_->children.end();
    if (is_there && child->second->kind == Place::Kind::kFolder) at_ = child->second.get();
    else if (is_there && child->second->kind == Place::Kind::kLink) follow(*child->second);
    else {
      ++unknown_;
      dangles_ = true;
    }
  }

  const Place* at_;
  std::size_t unknown_ = 0;  // levels below at_
  bool dangles_ = false;     // something on the way is not there
  std::string rest_;
  std::size_t next_ = 0;  // where in rest_
  std::size_t& steps_left_;
  Resolution& resolution_;
};

LinkModel::Resolution LinkModel::resolve(const std::string& link, std::size_t& steps_left) const {
  Resolution resolution;
  const Place* const place = find(link);
  if (place != nullptr && place->kind == Place::Kind::kLink)
    Walk(*place, steps_left, resolution).run();
  return resolution;
}

}  // namespace sw::wasi
