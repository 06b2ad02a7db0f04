#include "agent/shim/rootfs.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

std::string FdPath(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

Status Mount(const char* source, const std::string& target, const char* type, unsigned long flags,
             const char* data = nullptr) {
  if (mount(source, target.c_str(), type, flags, data) == 0) return Status::Ok();
  return SystemError(fmt::format("mount {} on", source == nullptr ? type : source), target, errno);
}

// The mount that `fd` is the root of, and those below it.
Status Restrict(int fd, uint64_t attributes) {
  mount_attr change = {};
  change.attr_set = attributes;
  if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) == 0)
    return Status::Ok();
  return SystemError("mount_setattr (Linux 5.12) on", "a volume", errno);
}

// Escapes what separates options and layers.
std::string OverlayPath(const std::string& path) {
  std::string out;
  for (char c : path) {
    if (c == '\\' || c == ':' || c == ',') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

int OpenAt2(int root_fd, const char* path, uint64_t flags, uint64_t resolve = RESOLVE_IN_ROOT) {
  open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, root_fd, path, &how, sizeof how));
}

// `lower` as overlayfs writes lists of layers; `base` gets upper and work folders.
Status MountOverlay(const std::string& lower, const std::string& base, const std::string& target,
                    const char* options) {
  const std::string upper = base + "/upper", work = base + "/work";
  for (const std::string& dir : {upper, work, target}) RETURN_IF_ERROR(MakeDirs(dir));
  const auto try_mount = [&](const char* more) {
    const std::string data = fmt::format("lowerdir={},upperdir={},workdir={}{}{}", lower,
                                         OverlayPath(upper), OverlayPath(work), options, more);
    return Mount("overlay", target, "overlay", MS_NODEV, data.c_str());
  };
  // `volatile` leaves out the sync at the end: the layer is thrown away anyway.
  return try_mount(",volatile").ok() ? Status::Ok() : try_mount("");
}

Status MountOverlays(const ContainerSpec& spec, const RootfsPlace& place, const std::string& root) {
  if (!spec.image_root.empty())
    return MountOverlay(OverlayPath(spec.image_root), place.base, root,
                        place.overlays.empty() ? "" : ",userxattr");
  if (place.overlays.empty())
    return MountOverlay(OverlayPath(place.layer) + ":/", place.base, root, "");
  constexpr const char* kUser = ",userxattr";
  RETURN_IF_ERROR(MountOverlay(OverlayPath(place.layer), place.base, root, kUser));
  for (size_t i = 0; i < place.overlays.size(); ++i) {
    const std::string& path = place.overlays[i];
    const std::string lower = OverlayPath(place.layer + path) + ":" + OverlayPath(path);
    RETURN_IF_ERROR(
        MountOverlay(lower, fmt::format("{}/overlays/{}", place.base, i), root + path, kUser));
  }
  return Status::Ok();
}

Status MountRoot(const ContainerSpec& spec, const RootfsPlace& place, const std::string& root) {
  if (MountOverlays(spec, place, root).ok()) return Status::Ok();
  // The data folder may be on a file system that cannot be an upper layer (an overlay itself):
  // memory can.
  RETURN_IF_ERROR(Mount("tmpfs", place.base, "tmpfs", MS_NODEV, "mode=0700"));
  return MountOverlays(spec, place, root);
}

Status ProtectRoot(const ContainerSpec& spec, const RootfsPlace& place, const std::string& root) {
  constexpr unsigned long kFlags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NODEV;
  const bool machine = spec.image_root.empty();
  for (const std::string& path : machine ? place.overlays : std::vector<std::string>())
    RETURN_IF_ERROR(Mount(nullptr, root + path, nullptr, kFlags));
  return Mount(nullptr, root, nullptr, kFlags);
}

// In a user namespace there are no device nodes but those of the node.
Status MakeDeviceNode(const std::string& path, mode_t mode, dev_t device,
                      const std::string& on_node) {
  if (mknod(path.c_str(), S_IFCHR | mode, device) == 0) {
    if (chmod(path.c_str(), mode) != 0) return SystemError("chmod", path, errno);
    return Status::Ok();
  }
  if (errno != EPERM) return SystemError("mknod", path, errno);
  RETURN_IF_ERROR(WriteFile(path, ""));
  return Mount(on_node.c_str(), path, nullptr, MS_BIND);
}

Status OfferDevice(const DeviceNode& device, const std::string& dev) {
  struct stat info = {};
  if (!device.source.starts_with("/dev/") || stat(device.source.c_str(), &info) != 0 ||
      !S_ISCHR(info.st_mode)) {
    return Error(Reason::kInvalid, "{} is not a character device of this node", device.source);
  }
  if (!device.target.starts_with("/dev/") || device.target.contains("/../"))
    return Error(Reason::kInvalid, "a device cannot be at {}: it is not below /dev", device.target);
  const std::string target = dev + device.target.substr(4);
  if (PathExists(target)) return Status::Ok();  // another device's plugin gives it, too
  RETURN_IF_ERROR(MakeDirs(target.substr(0, target.find_last_of('/'))));
  return MakeDeviceNode(target, 0666, info.st_rdev, device.source);
}

Status OfferDevices(const ContainerSpec& spec, const std::string& dev) {
  for (const std::string& device : spec.devices)
    RETURN_IF_ERROR(OfferDevice({device, device}, dev));
  for (const DeviceNode& device : spec.plugin_devices) RETURN_IF_ERROR(OfferDevice(device, dev));
  return Status::Ok();
}

// Group 5 is Debian's `tty`; there is no such group where the user has no ids but his own.
Status MountTerminals(const std::string& path) {
  const std::string options = "newinstance,ptmxmode=0666,mode=0620";
  constexpr unsigned long kFlags = MS_NOSUID | MS_NOEXEC;
  if (mount("devpts", path.c_str(), "devpts", kFlags, (options + ",gid=5").c_str()) == 0)
    return Status::Ok();
  return Mount("devpts", path, "devpts", kFlags, options.c_str());
}

Status MountDev(const ContainerSpec& spec, const RootfsPlace& place, const std::string& root) {
  const std::string dev = root + "/dev";
  RETURN_IF_ERROR(Mount("tmpfs", dev, "tmpfs", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k"));
  struct Node {
    const char* name;
    unsigned minor_number;
    unsigned major_number;
  };
  for (const Node& node : {Node{"null", 3, 1}, Node{"zero", 5, 1}, Node{"full", 7, 1},
                           Node{"random", 8, 1}, Node{"urandom", 9, 1}, Node{"tty", 0, 5}}) {
    RETURN_IF_ERROR(MakeDeviceNode(dev + "/" + node.name, 0666,
                                   makedev(node.major_number, node.minor_number),
                                   std::string("/dev/") + node.name));
  }
  RETURN_IF_ERROR(OfferDevices(spec, dev));
  for (const char* dir : {"/pts", "/shm", "/mqueue"}) {
    if (mkdir((dev + dir).c_str(), 0755) != 0) return SystemError("mkdir", dev + dir, errno);
  }
  RETURN_IF_ERROR(MountTerminals(dev + "/pts"));
  RETURN_IF_ERROR(Mount(place.shm.c_str(), dev + "/shm", nullptr, MS_BIND));
  (void)Mount("mqueue", dev + "/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  struct Link {
    const char* target;
    const char* name;
  };
  for (const Link& link : {Link{"pts/ptmx", "/ptmx"}, Link{"/proc/self/fd", "/fd"},
                           Link{"/proc/self/fd/0", "/stdin"}, Link{"/proc/self/fd/1", "/stdout"},
                           Link{"/proc/self/fd/2", "/stderr"}, Link{"/proc/kcore", "/core"}}) {
    if (symlink(link.target, (dev + link.name).c_str()) != 0)
      return SystemError("symlink", dev + link.name, errno);
  }
  return Status::Ok();
}

Status ReadOnlyBind(const std::string& path) {
  if (!PathExists(path)) return Status::Ok();
  RETURN_IF_ERROR(Mount(path.c_str(), path, nullptr, MS_BIND | MS_REC));
  return Mount(nullptr, path, nullptr,
               MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

// The lists of the OCI runtime's default: what tells of or changes the node.
Status MaskKernel(const std::string& root) {
  for (const char* path :
       {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}) {
    RETURN_IF_ERROR(ReadOnlyBind(root + path));
  }
  for (const char* path : {"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
                           "/proc/timer_stats", "/proc/sched_debug"}) {
    if (!PathExists(root + path)) continue;
    RETURN_IF_ERROR(Mount("/dev/null", root + path, nullptr, MS_BIND));
  }
  for (const char* path : {"/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/firmware",
                           "/sys/devices/virtual/powercap"}) {
    if (!PathExists(root + path)) continue;
    RETURN_IF_ERROR(Mount("tmpfs", root + path, "tmpfs", MS_RDONLY, "size=0"));
  }
  return Status::Ok();
}

// Where a tree that `source` names appears: by descriptors, so that no link is followed.
Result<UniqueFd> MountTree(int source, int target, uint64_t attributes) {
  UniqueFd tree(static_cast<int>(
      syscall(SYS_open_tree, source, "",
              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)));
  if (!tree.valid()) return SystemError("open_tree", "a volume", errno);
  RETURN_IF_ERROR(Restrict(tree.get(), attributes));
  if (syscall(SYS_move_mount, tree.get(), "", target, "",
              MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return SystemError("move_mount to", "a volume's place", errno);
  }
  return tree;
}

// As containerd shows them: a folder for each hierarchy, named as on the node, with the container's
// own group in it; other controllers of the same hierarchy are links. Bound rather than mounted
// anew, which would take the kernel's cgroup lock.
Status ShowCgroupsV1(const std::map<std::string, std::string>& dirs, const std::string& group,
                     const std::string& target) {
  RETURN_IF_ERROR(Mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755"));
  for (const auto& [controller, dir] : dirs) {
    const std::string root = dir.substr(0, dir.size() - group.size() - 1);
    const std::string name = root.substr(root.find_last_of('/') + 1);
    if (name != controller && symlink(name.c_str(), (target + "/" + controller).c_str()) != 0)
      return SystemError("symlink", target + "/" + controller, errno);
    const std::string place = target + "/" + name;
    if (mkdir(place.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;  // another controller of this hierarchy
      return SystemError("mkdir", place, errno);
    }
    UniqueFd from(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    UniqueFd to(open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!from.valid() || !to.valid()) return SystemError("open", dir, errno);
    constexpr uint64_t kAttributes =
        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    const Result<UniqueFd> shown = MountTree(from.get(), to.get(), kAttributes);
    if (!shown) return shown.error();
  }
  return Mount(nullptr, target, nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
               "mode=755");
}

Status MountKernel(const ContainerSpec& spec, const RootfsPlace& place, const std::string& root) {
  constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  RETURN_IF_ERROR(Mount("proc", root + "/proc", "proc", kPlain));
  const Status sys = Mount("sysfs", root + "/sys", "sysfs", kPlain | MS_RDONLY);
  if (!sys.ok()) {
    // A network namespace that is not ours (hostNetwork in a container): show the node's,
    // read-only.
    RETURN_IF_ERROR(Mount("/sys", root + "/sys", nullptr, MS_BIND | MS_REC));
    UniqueFd mounted(open((root + "/sys").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    RETURN_IF_ERROR(Restrict(mounted.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV));
  }
  const std::string groups = root + "/sys/fs/cgroup";
  const Cgroups::Mode mode =
      place.cgroups == nullptr ? Cgroups::Mode::kNone : place.cgroups->mode();
  if (mode == Cgroups::Mode::kV2) (void)Mount("cgroup2", groups, "cgroup2", kPlain | MS_RDONLY);
  if (mode == Cgroups::Mode::kV1)
    RETURN_IF_ERROR(ShowCgroupsV1(place.cgroups->DirsV1(spec.cgroup), spec.cgroup, groups));
  return MaskKernel(root);
}

// Whatever the umask says.
Status MakeFolder(int parent, const std::string& name, mode_t mode) {
  if (mkdirat(parent, name.c_str(), 0700) != 0)
    return errno == EEXIST ? Status::Ok() : Status(SystemError("mkdir", name, errno));
  UniqueFd made(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made.valid() || fchmod(made.get(), mode) != 0) return SystemError("chmod", name, errno);
  return Status::Ok();
}

// Makes what is missing below root_fd, one component at a time, each resolved inside the root.
// `mode`: of folders.
Status CreateInRoot(int root_fd, const std::string& path, bool as_file, mode_t mode = 0755) {
  const std::vector<std::string_view> parts = SplitNonEmpty(path, '/');
  std::string so_far;
  for (size_t i = 0; i < parts.size(); ++i) {
    UniqueFd parent(OpenAt2(root_fd, so_far.empty() ? "." : so_far.c_str(), O_PATH | O_DIRECTORY));
    if (!parent.valid()) return SystemError("open", so_far, errno);
    const std::string name(parts[i]);
    so_far += (so_far.empty() ? "" : "/") + name;
    if (name == "." || name == "..") continue;
    UniqueFd existing(OpenAt2(root_fd, so_far.c_str(), O_PATH));
    if (existing.valid()) continue;
    if (as_file && i + 1 == parts.size()) {
      UniqueFd file(openat(parent.get(), name.c_str(),
                           O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644));
      if (!file.valid() && errno != EEXIST) return SystemError("create", so_far, errno);
    } else {
      RETURN_IF_ERROR(MakeFolder(parent.get(), name, mode));
    }
  }
  return Status::Ok();
}

// What a subPath names; missing folders are like the volume's own, and are not made in a volume
// that is read-only. A link that leads out of the volume is an error. All as upstream.
Result<UniqueFd> OpenSubPath(const UniqueFd& volume, const ContainerMount& mount) {
  const std::string& sub_path = mount.sub_path;
  UniqueFd inner(OpenAt2(volume.get(), sub_path.c_str(), O_PATH, RESOLVE_BENEATH));
  if (!inner.valid() && errno == ENOENT) {
    if (mount.fixed) {
      return Error(Reason::kNotFound, "subPath {:?} does not exist, and its volume is read-only",
                   sub_path);
    }
    struct stat info = {};
    if (fstat(volume.get(), &info) != 0) return SystemError("stat", "a volume", errno);
    RETURN_IF_ERROR(CreateInRoot(volume.get(), sub_path, false, info.st_mode & 07777));
    inner.Reset(OpenAt2(volume.get(), sub_path.c_str(), O_PATH, RESOLVE_BENEATH));
  }
  if (inner.valid()) return inner;
  if (errno == EXDEV)
    return Error(Reason::kInvalid, "subPath {:?} leads out of its volume through a link", sub_path);
  return SystemError("open subPath", sub_path, errno);
}

Result<UniqueFd> OpenSource(const ContainerMount& mount) {
  // A path that was resolved when it was checked has no links; one now would lead elsewhere.
  const uint64_t resolve = mount.resolved ? RESOLVE_NO_SYMLINKS : 0;
  UniqueFd source(OpenAt2(AT_FDCWD, mount.source.c_str(), O_PATH, resolve));
  if (!source.valid() && errno == ELOOP) {
    return Error(Reason::kInvalid, "hostPath {} became a link while it was being mounted",
                 mount.source);
  }
  if (!source.valid()) return SystemError("open volume", mount.source, errno);
  return mount.sub_path.empty() ? std::move(source) : OpenSubPath(source, mount);
}

// A hostPath that contains the data folder shows it empty. With a subPath the data folder may be
// elsewhere; then there is nothing to hide, and it is refused when the subPath leads into it.
Status HideBelow(const ContainerMount& mount, int mounted_fd) {
  if (mount.hidden_below.empty()) return Status::Ok();
  std::string hidden = mount.hidden_below;
  if (!mount.sub_path.empty()) {
    if (hidden == mount.sub_path || mount.sub_path.starts_with(hidden + "/")) {
      return Error(Reason::kInvalid, "subPath {} is inside muster's own data folder",
                   mount.sub_path);
    }
    if (!hidden.starts_with(mount.sub_path + "/")) return Status::Ok();
    hidden = hidden.substr(mount.sub_path.size() + 1);
  }
  ASSIGN_OR_RETURN(const int fd, OpenInRoot(mounted_fd, hidden, false, false));
  UniqueFd target(fd);
  return Mount("tmpfs", FdPath(target.get()), "tmpfs", MS_RDONLY, "size=0,mode=0700");
}

// By descriptors alone: between two look-ups of a path another container of the pod could put a
// link there. Device nodes do not work in volumes, as where a device cgroup guards them.
Status MountVolume(const ContainerMount& mount, int root_fd) {
  ASSIGN_OR_RETURN(const UniqueFd source, OpenSource(mount));
  struct stat info = {};
  if (fstat(source.get(), &info) != 0) return SystemError("stat", mount.source, errno);
  ASSIGN_OR_RETURN(const int target_fd,
                   OpenInRoot(root_fd, mount.target, true, !S_ISDIR(info.st_mode)));
  const UniqueFd target(target_fd);
  const Result<UniqueFd> tree = MountTree(
      source.get(), target.get(), MOUNT_ATTR_NODEV | (mount.read_only ? MOUNT_ATTR_RDONLY : 0));
  if (!tree) return tree.error().WithPrefix(fmt::format("mountPath {}: ", mount.target));
  return HideBelow(mount, tree->get());
}

Status MountTerminationLog(const ContainerSpec& spec, const RootfsPlace& place, int root_fd) {
  if (spec.termination_message_path.empty()) return Status::Ok();
  const std::string file = place.base + "/termination-log";
  if (!PathExists(file)) return Status::Ok();
  return MountVolume({.source = file, .target = spec.termination_message_path}, root_fd);
}

// An image need not have them; one that has links in their place would have us mount elsewhere.
Status MakeKernelFolders(const std::string& root) {
  for (const char* name : {"/proc", "/sys", "/dev"}) {
    const std::string path = root + name;
    if (mkdir(path.c_str(), 0755) == 0) continue;
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      return Error(Reason::kInvalid, "the image's {} is not a folder", name);
  }
  return Status::Ok();
}

// Those of the pod's layer, which an image is not under.
Status MountPodFiles(const RootfsPlace& place, int root_fd) {
  for (const char* path : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) {
    if (!PathExists(place.layer + path)) continue;
    RETURN_IF_ERROR(MountVolume({.source = place.layer + path, .target = path}, root_fd));
  }
  return Status::Ok();
}

Status PivotTo(const std::string& root) {
  if (chdir(root.c_str()) != 0) return SystemError("chdir", root, errno);
  if (syscall(SYS_pivot_root, ".", ".") != 0) return SystemError("pivot_root", root, errno);
  if (umount2(".", MNT_DETACH) != 0) return SystemError("umount", "the old root", errno);
  if (chdir("/") != 0) return SystemError("chdir", "/", errno);
  return Status::Ok();
}

}  // namespace

Result<int> OpenForUse(int root_fd, const std::string& path, int flags) {
  const int fd = OpenAt2(root_fd, path.c_str(), static_cast<uint64_t>(flags));
  if (fd < 0) return SystemError("open", path, errno);
  return fd;
}

Result<int> OpenInRoot(int root_fd, const std::string& path, bool create, bool as_file) {
  const std::string relative = path.empty() ? "." : path;
  int fd = OpenAt2(root_fd, relative.c_str(), O_PATH);
  if (fd < 0 && errno == ENOENT && create) {
    RETURN_IF_ERROR(CreateInRoot(root_fd, path, as_file));
    fd = OpenAt2(root_fd, relative.c_str(), O_PATH);
  }
  if (fd < 0) return SystemError("open", path, errno);
  return fd;
}

Status EnterRootfs(const ContainerSpec& spec, const RootfsPlace& place) {
  const std::string root = place.base + "/root";
  RETURN_IF_ERROR(MountRoot(spec, place, root));
  if (!spec.image_root.empty()) RETURN_IF_ERROR(MakeKernelFolders(root));
  RETURN_IF_ERROR(MountKernel(spec, place, root));
  RETURN_IF_ERROR(MountDev(spec, place, root));
  UniqueFd root_fd(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd.valid()) return SystemError("open", root, errno);
  if (!spec.image_root.empty()) RETURN_IF_ERROR(MountPodFiles(place, root_fd.get()));
  for (const ContainerMount& mount : spec.mounts)
    RETURN_IF_ERROR(MountVolume(mount, root_fd.get()));
  RETURN_IF_ERROR(MountTerminationLog(spec, place, root_fd.get()));
  if (!spec.working_dir.empty()) {
    ASSIGN_OR_RETURN(const int fd, OpenInRoot(root_fd.get(), spec.working_dir, true, false));
    close(fd);
  }
  // Only now: the mount points above had to be made.
  if (spec.read_only_root) RETURN_IF_ERROR(ProtectRoot(spec, place, root));
  return PivotTo(root);
}

}  // namespace muster::agent
