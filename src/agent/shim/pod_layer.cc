#include "agent/shim/pod_layer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

struct HiddenDir {
  const char* path;
  mode_t mode;
};

// Fresh or empty in every container. /root is the home of what runs there; the rest holds the
// node's own secrets.
constexpr HiddenDir kHiddenDirs[] = {
    {"/root", 0700},
    {"/home", 0755},
    {"/tmp", 01777},
    {"/run", 0755},
    {"/var/tmp", 01777},
    {"/var/log", 0755},
    {"/etc/ssl/private", 0700},
    {"/etc/kubernetes", 0755},
    {"/etc/rancher", 0755},
    {"/var/lib/muster", 0755},
    {"/var/lib/kubelet", 0755},
    {"/var/lib/etcd", 0755},
    {"/var/lib/docker", 0755},
    {"/var/lib/containerd", 0755},
    {"/var/lib/rancher", 0755},
    {"/var/spool/cron", 0755},
};

constexpr std::string_view kLockedShadow = "root:*:19000:0:99999:7:::\n";

bool IsBelow(const std::string& path, const std::string& dir) {
  return path == dir || path.starts_with(dir + "/");
}

// Pod starts wait for this, so the node is asked once about each path, and nothing is made twice.
class LayerBuilder {
 public:
  LayerBuilder(const std::string& layer, const std::string& node_root, bool in_user_namespace)
      : layer_(layer),
        node_root_(node_root == "/" ? "" : node_root),
        in_user_namespace_(in_user_namespace),
        umask_(umask(0)) {}
  ~LayerBuilder() { umask(umask_); }
  LayerBuilder(const LayerBuilder&) = delete;
  LayerBuilder& operator=(const LayerBuilder&) = delete;

  Status Build(const PodLayerContents& contents) {
    RETURN_IF_ERROR(MakeDirs(layer_));
    layer_fd_.Reset(open(layer_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!layer_fd_.valid()) return SystemError("open", layer_, errno);
    if (contents.user_root) RETURN_IF_ERROR(MakeRoot(*contents.user_root));
    for (const HiddenDir& dir : kHiddenDirs) RETURN_IF_ERROR(HideDir(dir.path, dir.mode));
    for (const std::string& path : contents.hidden) RETURN_IF_ERROR(HideDir(path, 0755));
    RETURN_IF_ERROR(HideForRootAlone(contents));
    RETURN_IF_ERROR(HideSecrets());
    RETURN_IF_ERROR(OfferPython());
    for (const auto& [path, text] : contents.files) RETURN_IF_ERROR(PutFile(path, text, 0644));
    return Status::Ok();
  }

 private:
  // lstat() of the node's `path`; null if nothing is there.
  const struct stat* OnNode(const std::string& path) {
    const auto [entry, is_new] = asked_.try_emplace(path);
    struct stat info = {};
    if (is_new && lstat((node_root_ + path).c_str(), &info) == 0) entry->second = info;
    return entry->second ? &*entry->second : nullptr;
  }

  // The folder that `path` names on the node, without links (a /home that is a link to /data/home
  // hides /data/home); none if there is no such folder.
  std::optional<std::string> FolderOnNode(const std::string& path) {
    for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      const struct stat* info = OnNode(path.substr(0, slash));
      if (info == nullptr) return std::nullopt;
      if (S_ISLNK(info->st_mode)) return FollowOnNode(path);
      if (!S_ISDIR(info->st_mode)) return std::nullopt;
      if (slash == std::string::npos) return path;
    }
  }

  std::optional<std::string> FollowOnNode(const std::string& path) const {
    const std::string full = node_root_ + path;
    char resolved[PATH_MAX];
    struct stat info = {};
    if (stat(full.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return std::nullopt;
    if (realpath(full.c_str(), resolved) == nullptr) return path;
    std::string out = resolved;
    if (!node_root_.empty() && out.starts_with(node_root_)) out = out.substr(node_root_.size());
    return out.empty() ? "/" : out;
  }

  // Makes the layer's `path` as a folder with this mode and owner.
  Status MakeFolder(const std::string& path, mode_t mode, uid_t user, gid_t group) {
    if (!made_.insert(path).second) return Status::Ok();
    if (in_user_namespace_) user = group = 0;  // the node's owners have no number here
    const char* relative = path.c_str() + 1;
    const bool is_new = mkdirat(layer_fd_.get(), relative, mode) == 0;
    if (!is_new && errno != EEXIST) return SystemError("mkdir", layer_ + path, errno);
    if ((user != 0 || group != 0 || !is_new) &&
        fchownat(layer_fd_.get(), relative, user, group, AT_SYMLINK_NOFOLLOW) != 0) {
      return SystemError("chown", layer_ + path, errno);
    }
    // mkdir() takes all of the mode but the set-id bits.
    if ((!is_new || (mode & (S_ISUID | S_ISGID)) != 0) &&
        fchmodat(layer_fd_.get(), relative, mode, 0) != 0) {
      return SystemError("chmod", layer_ + path, errno);
    }
    return Status::Ok();
  }

  // Makes layer/a and layer/a/b for /a/b/c, looking as they do on the node.
  Status CopyParents(const std::string& path) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string dir = path.substr(0, slash);
      if (made_.contains(dir)) continue;
      const struct stat* info = OnNode(dir);
      RETURN_IF_ERROR(info == nullptr
                          ? MakeFolder(dir, 0755, 0, 0)
                          : MakeFolder(dir, info->st_mode & 07777, info->st_uid, info->st_gid));
    }
    return Status::Ok();
  }

  Status HideDir(const std::string& path, mode_t mode, uid_t user = 0, gid_t group = 0) {
    const std::optional<std::string> folder = FolderOnNode(path);
    if (!folder) return Status::Ok();
    if (*folder == "/")
      return Error(Reason::kInvalid, "{} is the root folder; it cannot be hidden", path);
    RETURN_IF_ERROR(CopyParents(*folder));
    RETURN_IF_ERROR(MakeFolder(*folder, mode, user, group));
    const std::string target = layer_ + *folder;
    const char* attribute = in_user_namespace_ ? kUserOpaque : "trusted.overlay.opaque";
    if (setxattr(target.c_str(), attribute, "y", 1, 0) != 0)
      return SystemError(fmt::format("set {} on", attribute), target, errno);
    return Status::Ok();
  }

  // The folders, links and files of the root that no overlay brings.
  Status MakeRoot(const UserRootPlan& plan) {
    for (const auto* list : {&plan.folders, &plan.overlays}) {
      for (const std::string& path : *list) {
        const struct stat* info = OnNode(path);
        RETURN_IF_ERROR(CopyParents(path));
        RETURN_IF_ERROR(MakeFolder(path, info == nullptr ? 0755 : info->st_mode & 07777, 0, 0));
      }
    }
    for (const std::string& path : plan.links) RETURN_IF_ERROR(CopyLink(path));
    for (const std::string& path : plan.files) {
      const struct stat* info = OnNode(path);
      if (info == nullptr || (info->st_mode & S_IROTH) == 0) continue;
      const auto text = ReadSmallFile(node_root_ + path, kMaxCopiedFileBytes);
      if (text) RETURN_IF_ERROR(PutFile(path, *text, info->st_mode & 0777));
    }
    return Status::Ok();
  }

  Status CopyLink(const std::string& path) {
    char target[PATH_MAX];
    const ssize_t size = readlink((node_root_ + path).c_str(), target, sizeof target);
    if (size < 0) return Status::Ok();  // gone meanwhile
    const std::string text(target, static_cast<size_t>(size));
    if (symlinkat(text.c_str(), layer_fd_.get(), path.c_str() + 1) != 0 && errno != EEXIST)
      return SystemError("symlink", layer_ + path, errno);
    return Status::Ok();
  }

  Status WhiteOut(const std::string& path) {
    if (OnNode(path) == nullptr) return Status::Ok();
    RETURN_IF_ERROR(CopyParents(path));
    if (mknodat(layer_fd_.get(), path.c_str() + 1, S_IFCHR, makedev(0, 0)) != 0 && errno != EEXIST)
      return SystemError("mknod", layer_ + path, errno);
    return Status::Ok();
  }

  Status PutFile(const std::string& path, std::string_view text, mode_t mode) {
    RETURN_IF_ERROR(CopyParents(path));
    (void)unlinkat(layer_fd_.get(), path.c_str() + 1, 0);  // a whiteout, perhaps
    return WriteFile(layer_ + path, text, mode);
  }

  // Debian has no `python`; images have.
  Status OfferPython() {
    constexpr const char* kPath[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                     "/usr/bin",        "/sbin",          "/bin"};
    std::string python3;
    for (const char* dir : kPath) {
      if (OnNode(std::string(dir) + "/python") != nullptr) return Status::Ok();
      const std::string candidate = std::string(dir) + "/python3";
      if (python3.empty() && OnNode(candidate) != nullptr) python3 = candidate;
    }
    if (python3.empty()) return Status::Ok();
    const std::string link = "/usr/local/bin/python";
    RETURN_IF_ERROR(CopyParents(link));
    if (symlinkat(python3.c_str(), layer_fd_.get(), link.c_str() + 1) != 0 && errno != EEXIST)
      return SystemError("symlink", layer_ + link, errno);
    return Status::Ok();
  }

  // What only root may read on the node; folders stay, empty, with their mode and owner.
  Status HideForRootAlone(const PodLayerContents& contents) {
    for (const std::string& path : contents.secrets) {
      const auto covers = [&path](const std::string& dir) { return IsBelow(path, dir); };
      if (std::any_of(std::begin(kHiddenDirs), std::end(kHiddenDirs),
                      [&](const HiddenDir& dir) { return covers(dir.path); }) ||
          std::any_of(contents.hidden.begin(), contents.hidden.end(), covers)) {
        continue;
      }
      const struct stat* info = OnNode(path);
      if (info == nullptr) continue;  // gone meanwhile
      RETURN_IF_ERROR(S_ISDIR(info->st_mode)
                          ? HideDir(path, info->st_mode & 07777, info->st_uid, info->st_gid)
                          : WhiteOut(path));
    }
    return Status::Ok();
  }

  Status HideSecrets() {
    for (const std::string& name : ListDir(node_root_ + "/etc/ssh")) {
      if (name.starts_with("ssh_host_") && name.ends_with("_key"))
        RETURN_IF_ERROR(WhiteOut("/etc/ssh/" + name));
    }
    for (const char* path : {"/etc/shadow-", "/etc/gshadow-", "/etc/gshadow", "/etc/krb5.keytab"})
      RETURN_IF_ERROR(WhiteOut(path));
    return PutFile("/etc/shadow", kLockedShadow, 0600);
  }

  const std::string layer_;
  const std::string node_root_;  // "" for the real one
  const bool in_user_namespace_;
  const mode_t umask_;
  UniqueFd layer_fd_;
  std::map<std::string, std::optional<struct stat>> asked_;
  std::set<std::string> made_;
};

}  // namespace

std::vector<std::string> HiddenFolders(const PodLayerContents& contents) {
  std::vector<std::string> out = contents.hidden;
  out.insert(out.end(), contents.secrets.begin(), contents.secrets.end());
  for (const HiddenDir& dir : kHiddenDirs) out.emplace_back(dir.path);
  return out;
}

Status BuildPodLayer(const std::string& layer, const PodLayerContents& contents,
                     const std::string& node_root) {
  return LayerBuilder(layer, node_root, contents.user_root.has_value()).Build(contents);
}

}  // namespace muster::agent
