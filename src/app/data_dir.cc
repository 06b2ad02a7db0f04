#include "app/data_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "agent/network/address_ranges.h"
#include "agent/runtime/files.h"
#include "base/files.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = "muster-data-directory";
constexpr std::array<std::string_view, 9> kFolders = {
    "run",    "pki",           "store",
    "pods",   "logs",          "kubelet",
    "images", "local-volumes", "local-volumes-made"};
constexpr std::string_view kKubeconfig = "kubeconfig";
constexpr std::string_view kNodeNameFile = "run/node-name";

std::string Join(const std::string& dir, std::string_view name) {
  return dir + "/" + std::string(name);
}

Status MakePrivate(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return Error(Reason::kInternalError, "cannot make the directory {}: {}", path, error.message());
  }
  if (chmod(path.c_str(), 0700) != 0) {
    return Error(Reason::kInternalError,
                 "cannot set the mode of {}: {}; muster must own it and be able to write there, or "
                 "name another --data-dir",
                 path, std::strerror(errno));
  }
  return Status::Ok();
}

Status Remove(const std::string& path) {
  // Stops at what is mounted: a volume that did not come off holds users' data.
  return agent::RemoveTree(path).WithPrefix("cannot delete what is muster's: ");
}

}  // namespace

bool IsDataDir(const std::string& dir) {
  struct stat info = {};
  return lstat(Join(dir, kMarker).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Status CheckOwner(const std::string& dir) {
  struct stat info{};
  // Where one may not look there is none of one's own.
  const bool hidden = lstat(Join(dir, kMarker).c_str(), &info) != 0 && errno == EACCES &&
                      stat(dir.c_str(), &info) == 0;
  if (!hidden && !IsDataDir(dir)) return Status::Ok();
  if (info.st_uid == geteuid()) return Status::Ok();
  return Error(Reason::kForbidden,
               "{} is {} of user {}: run this as that user, or name another directory with "
               "--data-dir",
               dir, hidden ? "a private directory" : "the data directory", info.st_uid);
}

Status CheckPlace(const std::string& dir) {
  std::error_code error;
  fs::path nearest = dir;
  while (!fs::exists(fs::symlink_status(nearest, error)) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  const fs::file_status what = fs::status(nearest, error);
  if (what.type() == fs::file_type::not_found) {
    return Error(Reason::kConflict, "--data-dir {}: {} is a link to what does not exist", dir,
                 nearest.string());
  }
  if (fs::exists(what) && !fs::is_directory(what)) {
    return Error(Reason::kConflict, "--data-dir {}: {} is a file, not a directory", dir,
                 nearest.string());
  }
  if (nearest != dir || IsDataDir(dir) || fs::is_empty(dir, error)) return Status::Ok();
  if (error) return Error(Reason::kConflict, "--data-dir {}: {}", dir, error.message());
  return Error(Reason::kConflict, "--data-dir {} holds files that are not muster's", dir);
}

Status MakeDataDir(const std::string& dir) {
  const Status place = CheckPlace(dir);
  if (!place.ok())
    return Status(place.reason(), place.message() + "; name an empty or a new directory");
  RETURN_IF_ERROR(MakePrivate(dir));
  const std::string marker = Join(dir, kMarker);
  const int fd = open(marker.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Error(Reason::kInternalError, "cannot make {}: {}", marker, std::strerror(errno));
  }
  close(fd);
  for (const std::string_view folder : kFolders) RETURN_IF_ERROR(MakePrivate(Join(dir, folder)));
  return Status::Ok();
}

Status KeepNodeName(const std::string& dir, bool given, std::string& name) {
  const std::string path = Join(dir, kNodeNameFile);
  const Result<std::string> kept = ReadSmallFile(path);
  if (!kept.has_value()) {
    if (kept.error().reason() != Reason::kNotFound) return kept.error();
    return WriteFileAtomic(path, name, 0600, true);
  }
  if (given && name != *kept) {
    return Error(Reason::kConflict,
                 "--node-name {}: the node of {} is {}, and its pods are bound to that name; start "
                 "without --node-name to go on with them, or begin anew after: muster down --purge "
                 "--data-dir {}",
                 name, dir, *kept, dir);
  }
  name = *kept;
  return Status::Ok();
}

Status PurgeDataDir(const std::string& dir) {
  if (!IsDataDir(dir)) {
    return Error(Reason::kConflict,
                 "{} is not a data directory of muster (no {} in it); nothing was deleted", dir,
                 kMarker);
  }
  for (const std::string_view folder : kFolders) RETURN_IF_ERROR(Remove(Join(dir, folder)));
  RETURN_IF_ERROR(Remove(Join(dir, kKubeconfig)));
  RETURN_IF_ERROR(Remove(Join(dir, agent::kAddressRangesFile)));
  RETURN_IF_ERROR(Remove(Join(dir, kMarker)));
  if (rmdir(dir.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  const int failure = errno;
  // A link (ENOTDIR) and a mount point (EBUSY) are not ours: they stay, empty.
  std::error_code error;
  const bool empty = fs::is_empty(dir, error) && !error;
  if (empty && (failure == ENOTDIR || failure == EBUSY)) return Status::Ok();
  return Error(Reason::kConflict, "{} stays: {}", dir,
               empty ? std::strerror(failure) : "it holds files that are not muster's");
}

}  // namespace muster::app
