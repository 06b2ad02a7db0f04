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

#include "agent/runtime/files.h"
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

std::string Under(const std::string& root, const std::string& path) {
  return root == "/" ? path : root + path;
}

// Makes layer/a and layer/a/b for /a/b/c, looking as they do on the node.
Status CopyParents(const std::string& layer, const std::string& path,
                   const std::string& node_root) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string dir = path.substr(0, slash);
    const std::string target = layer + dir;
    if (PathExists(target)) continue;
    struct stat info = {};
    if (lstat(Under(node_root, dir).c_str(), &info) != 0) {
      info.st_mode = 0755;
      info.st_uid = info.st_gid = 0;
    }
    if (mkdir(target.c_str(), 0755) != 0) return SystemError("mkdir", target, errno);
    if (chmod(target.c_str(), info.st_mode & 07777) != 0 ||
        lchown(target.c_str(), info.st_uid, info.st_gid) != 0) {
      return SystemError("chmod", target, errno);
    }
  }
  return Status::Ok();
}

// Where the path really is: a /home that is a link to /data/home hides /data/home.
std::string Resolve(const std::string& path, const std::string& node_root) {
  char resolved[PATH_MAX];
  if (realpath(Under(node_root, path).c_str(), resolved) == nullptr) return path;
  std::string out = resolved;
  if (node_root != "/" && out.starts_with(node_root)) out = out.substr(node_root.size());
  return out;
}

Status HideDir(const std::string& layer, const std::string& path, mode_t mode,
               const std::string& node_root) {
  struct stat info = {};
  if (stat(Under(node_root, path).c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return Status::Ok();
  const std::string resolved = Resolve(path, node_root);
  if (resolved == "/")
    return Error(Reason::kInvalid, "{} is the root folder; it cannot be hidden", path);
  RETURN_IF_ERROR(CopyParents(layer, resolved, node_root));
  const std::string target = layer + resolved;
  if (mkdir(target.c_str(), mode) != 0 && errno != EEXIST)
    return SystemError("mkdir", target, errno);
  if (chmod(target.c_str(), mode) != 0) return SystemError("chmod", target, errno);
  if (setxattr(target.c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0) {
    return SystemError("set trusted.overlay.opaque on", target, errno);
  }
  return Status::Ok();
}

Status WhiteOut(const std::string& layer, const std::string& path, const std::string& node_root) {
  if (!PathExists(Under(node_root, path))) return Status::Ok();
  RETURN_IF_ERROR(CopyParents(layer, path, node_root));
  if (mknod((layer + path).c_str(), S_IFCHR, makedev(0, 0)) != 0 && errno != EEXIST) {
    return SystemError("mknod", layer + path, errno);
  }
  return Status::Ok();
}

Status PutFile(const std::string& layer, const std::string& path, std::string_view text,
               mode_t mode, const std::string& node_root) {
  RETURN_IF_ERROR(CopyParents(layer, path, node_root));
  (void)unlink((layer + path).c_str());  // a whiteout, perhaps
  return WriteFile(layer + path, text, mode);
}

// Debian has no `python`; images have.
Status OfferPython(const std::string& layer, const std::string& node_root) {
  constexpr const char* kPath[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                   "/usr/bin",        "/sbin",          "/bin"};
  std::string python3;
  for (const char* dir : kPath) {
    if (PathExists(Under(node_root, std::string(dir) + "/python"))) return Status::Ok();
    const std::string candidate = std::string(dir) + "/python3";
    if (python3.empty() && PathExists(Under(node_root, candidate))) python3 = candidate;
  }
  if (python3.empty()) return Status::Ok();
  const std::string link = "/usr/local/bin/python";
  RETURN_IF_ERROR(CopyParents(layer, link, node_root));
  if (symlink(python3.c_str(), (layer + link).c_str()) != 0 && errno != EEXIST) {
    return SystemError("symlink", layer + link, errno);
  }
  return Status::Ok();
}

bool IsBelow(const std::string& path, const std::string& dir) {
  return path == dir || path.starts_with(dir + "/");
}

// What only root may read on the node; folders stay, empty, with their mode and owner.
Status HideForRootAlone(const std::string& layer, const PodLayerContents& contents,
                        const std::string& node_root) {
  for (const std::string& path : contents.secrets) {
    const auto covers = [&path](const std::string& dir) { return IsBelow(path, dir); };
    if (std::any_of(std::begin(kHiddenDirs), std::end(kHiddenDirs),
                    [&](const HiddenDir& dir) { return covers(dir.path); }) ||
        std::any_of(contents.hidden.begin(), contents.hidden.end(), covers)) {
      continue;
    }
    struct stat info = {};
    if (lstat(Under(node_root, path).c_str(), &info) != 0) continue;  // gone meanwhile
    if (!S_ISDIR(info.st_mode)) {
      RETURN_IF_ERROR(WhiteOut(layer, path, node_root));
      continue;
    }
    RETURN_IF_ERROR(HideDir(layer, path, info.st_mode & 07777, node_root));
    if (lchown((layer + path).c_str(), info.st_uid, info.st_gid) != 0)
      return SystemError("chown", layer + path, errno);
  }
  return Status::Ok();
}

Status HideSecrets(const std::string& layer, const std::string& node_root) {
  for (const std::string& name : ListDir(Under(node_root, "/etc/ssh"))) {
    if (name.starts_with("ssh_host_") && name.ends_with("_key")) {
      RETURN_IF_ERROR(WhiteOut(layer, "/etc/ssh/" + name, node_root));
    }
  }
  for (const char* path : {"/etc/shadow-", "/etc/gshadow-", "/etc/gshadow", "/etc/krb5.keytab"}) {
    RETURN_IF_ERROR(WhiteOut(layer, path, node_root));
  }
  return PutFile(layer, "/etc/shadow", kLockedShadow, 0600, node_root);
}

}  // namespace

Status BuildPodLayer(const std::string& layer, const PodLayerContents& contents,
                     const std::string& node_root) {
  RETURN_IF_ERROR(MakeDirs(layer));
  for (const HiddenDir& dir : kHiddenDirs)
    RETURN_IF_ERROR(HideDir(layer, dir.path, dir.mode, node_root));
  for (const std::string& path : contents.hidden)
    RETURN_IF_ERROR(HideDir(layer, path, 0755, node_root));
  RETURN_IF_ERROR(HideForRootAlone(layer, contents, node_root));
  RETURN_IF_ERROR(HideSecrets(layer, node_root));
  RETURN_IF_ERROR(OfferPython(layer, node_root));
  for (const auto& [path, text] : contents.files)
    RETURN_IF_ERROR(PutFile(layer, path, text, 0644, node_root));
  return Status::Ok();
}

}  // namespace muster::agent
