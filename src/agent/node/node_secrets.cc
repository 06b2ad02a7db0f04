#include "agent/node/node_secrets.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/runtime/files.h"
#include "base/log.h"

namespace muster::agent {
namespace {

// Where secrets of a machine lie, and how deep. Programs and libraries are no secrets.
struct Place {
  const char* path;
  int levels;
};
constexpr Place kPlaces[] = {{"", 1}, {"/etc", 8}, {"/var", 8}, {"/opt", 3}, {"/srv", 3}};

class Finder {
 public:
  Finder(std::string root, dev_t device) : root_(std::move(root)), device_(device) {}

  void Look(const std::string& dir, int levels) {
    for (const std::string& name : ListDir(root_ + dir)) {
      const std::string path = dir + "/" + name;
      struct stat info = {};
      if (lstat((root_ + path).c_str(), &info) != 0 || info.st_dev != device_) continue;
      const bool is_dir = S_ISDIR(info.st_mode);
      if (!is_dir && !S_ISREG(info.st_mode)) continue;
      if ((info.st_mode & S_IROTH) == 0) {
        paths.push_back(path);
      } else if (is_dir && levels > 1) {
        Look(path, levels - 1);
      }
    }
  }

  std::vector<std::string> paths;

 private:
  const std::string root_;
  const dev_t device_;
};

}  // namespace

std::vector<std::string> FindNodeSecrets(const std::string& root) {
  struct stat info = {};
  if (stat(root.c_str(), &info) != 0) return {};
  Finder finder(root == "/" ? "" : root, info.st_dev);
  for (const Place& place : kPlaces) finder.Look(place.path, place.levels);
  if (finder.paths.size() > kMaxNodeSecrets) {
    LOG_WARN("agent: {} paths are for root alone, only {} are hidden from pods",
             finder.paths.size(), kMaxNodeSecrets);
    finder.paths.resize(kMaxNodeSecrets);
  }
  return std::move(finder.paths);
}

std::vector<std::string> NodeSecrets::Paths() {
  const std::lock_guard lock(mutex_);
  const Duration now = RealClock().Monotonic();
  if (!looked_at_ || now - *looked_at_ > kNodeSecretsPeriod) {
    paths_ = FindNodeSecrets("/");
    looked_at_ = now;
  }
  return paths_;
}

}  // namespace muster::agent
