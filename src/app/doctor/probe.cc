#include "app/doctor/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "agent/images/image_files.h"
#include "agent/network/host_network.h"
#include "agent/network/netlink.h"
#include "agent/runtime/program.h"
#include "agent/runtime/unique_fd.h"
#include "agent/user_node/outside_network.h"
#include "agent/user_node/user_identity.h"
#include "app/data_dir.h"
#include "app/doctor/checks.h"
#include "app/instance_lock.h"
#include "base/files.h"
#include "base/strings.h"
#include "gpu/nvml.h"
#include "gpu/probe_process.h"
#include "net/pki.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using agent::UniqueFd;

constexpr size_t kMaxAnswerBytes = 4096;
constexpr Duration kTrialPatience = seconds(10);

std::string Errno(std::string_view what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

// What `question` says in a child process, which may change its own namespaces or hang.
Result<std::string> InChild(Duration patience, const std::function<std::string()>& question) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Error(Reason::kInternalError, "{}", Errno("pipe"));
  const UniqueFd reader(fds[0]);
  UniqueFd writer(fds[1]);
  const pid_t child = fork();
  if (child < 0) return Error(Reason::kInternalError, "{}", Errno("fork"));
  if (child == 0) {
    const std::string answer = question().substr(0, kMaxAnswerBytes);
    _exit(write(writer.get(), answer.data(), answer.size()) < 0 ? 1 : 0);
  }
  writer = UniqueFd();
  pollfd watched = {reader.get(), POLLIN, 0};
  const auto limit_ms = std::chrono::duration_cast<milliseconds>(patience).count();
  const bool answered = poll(&watched, 1, static_cast<int>(limit_ms)) > 0;
  std::string answer(kMaxAnswerBytes, '\0');
  const ssize_t size = answered ? read(reader.get(), answer.data(), answer.size()) : 0;
  answer.resize(size > 0 ? static_cast<size_t>(size) : 0);
  // One that hangs in the kernel is left to init.
  kill(child, SIGKILL);
  int state = 0;
  waitpid(child, &state, answered ? 0 : WNOHANG);
  if (!answered) return Error(Reason::kTimeout, "no answer within {} s", limit_ms / 1000);
  return answer;
}

// --- namespaces and overlay

std::string MapUser(uid_t uid, gid_t gid) {
  const auto put = [](const char* path, const std::string& text) {
    const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
    return fd.valid() && write(fd.get(), text.data(), text.size()) >= 0;
  };
  put("/proc/self/setgroups", "deny");
  if (!put("/proc/self/uid_map", fmt::format("0 {} 1", uid))) return Errno("write uid_map");
  if (!put("/proc/self/gid_map", fmt::format("0 {} 1", gid))) return Errno("write gid_map");
  return "";
}

std::string TryNamespaces(uid_t uid, gid_t gid) {
  const int own = uid == 0 ? 0 : CLONE_NEWUSER;
  if (unshare(own | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
              CLONE_NEWCGROUP) != 0) {
    return Errno("unshare");
  }
  if (own != 0) {
    if (const std::string error = MapUser(uid, gid); !error.empty()) return error;
  }
  // AppArmor lets a user make them, and takes all rights away in there.
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? "" : Errno("mount /");
}

// In a mount namespace of its own, over a memory file system: nothing is written to a disk. A
// folder of the machine may have other file systems below it, which keeps users from an overlay of
// it (agent/shim/user_root.h): theirs is over memory, too.
std::string TryOverlay(bool is_root) {
  if (mount("muster", "/tmp", "tmpfs", 0, nullptr) != 0) return Errno("mount a tmpfs");
  for (const char* path : {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/root"}) mkdir(path, 0755);
  const std::string options =
      fmt::format("lowerdir={},upperdir=/tmp/upper,workdir=/tmp/work{}",
                  is_root ? "/" : "/tmp/lower", is_root ? "" : ",userxattr");
  if (mount("overlay", "/tmp/root", "overlay", 0, options.c_str()) != 0) return Errno("overlay");
  return "";
}

void ProbeNamespaces(HostFacts& facts) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const Result<std::string> answer = InChild(kTrialPatience, [uid, gid] {
    if (const std::string error = TryNamespaces(uid, gid); !error.empty()) return error + "\n";
    return "\n" + TryOverlay(uid == 0);
  });
  if (!answer) {
    facts.namespaces = agent::GatherRefusalFacts(answer.error().message());
    return;
  }
  const size_t line = answer->find('\n');
  facts.namespaces = agent::GatherRefusalFacts(answer->substr(0, line));
  facts.overlay_error = facts.namespaces.error.empty() && line != answer->npos
                            ? answer->substr(line + 1)
                            : facts.namespaces.error;
}

// --- cgroups

CgroupFacts ProbeCgroups(bool is_root) {
  CgroupFacts facts;
  const auto mounts = ReadSmallFile("/proc/self/mountinfo");
  const auto own = ReadSmallFile("/proc/self/cgroup");
  if (!mounts || !own) return facts;
  std::string have, unified;
  for (const std::string_view line : SplitNonEmpty(*mounts, '\n')) {
    const std::vector<std::string_view> words = SplitNonEmpty(line, ' ');
    if (words.size() < 8) continue;
    if (line.contains(" - cgroup2 ")) unified = words[4];
    if (line.contains(" - cgroup ")) have += fmt::format(",{},", words.back());
  }
  std::string group = unified;
  if (!have.empty()) {
    facts.version = 1;
    facts.delegated = is_root;  // version 1 cannot be handed out safely
  } else if (!unified.empty()) {
    facts.version = 2;
    for (const std::string_view line : SplitNonEmpty(*own, '\n')) {
      if (line.starts_with("0::") && line != "0::/") group += line.substr(3);
    }
    // The nearest group that this user may divide, upwards from our own.
    facts.delegated = is_root;
    for (std::string at = group; !facts.delegated && at.size() > unified.size();
         at = fs::path(at).parent_path()) {
      facts.delegated =
          access(at.c_str(), W_OK) == 0 && access((at + "/cgroup.procs").c_str(), W_OK) == 0;
      if (facts.delegated) group = at;
    }
    const auto controllers = ReadSmallFile((is_root ? unified : group) + "/cgroup.controllers");
    if (controllers) have = "," + ReplaceAll(std::string(Trim(*controllers)), " ", ",") + ",";
  }
  for (const char* name : {"memory", "cpu", "pids"}) {
    if (!have.contains(fmt::format(",{},", name))) facts.missing.emplace_back(name);
  }
  return facts;
}

// --- network

void ProbeNetwork(const UpOptions& options, HostFacts& facts) {
  const char* forward_file = "/proc/sys/net/ipv4/ip_forward";
  const auto forwarding = ReadSmallFile(forward_file);
  facts.forwarding = forwarding && Trim(*forwarding) == "1";
  facts.forwarding_writable = access(forward_file, W_OK) == 0;
  facts.nft = agent::NftProgram();
  if (facts.user.is_root() && !facts.nft.empty()) {
    auto rules = agent::ListNft();
    if (rules)
      facts.nft_rules = *std::move(rules);
    else
      facts.nft_error = rules.error().message();
  }
  // The older iptables keeps rules that nft does not see; its file names the tables in use.
  const auto legacy = ReadSmallFile("/proc/net/ip_tables_names");
  if (facts.user.is_root() && legacy && legacy->contains("filter")) {
    for (const char* path : {"/usr/sbin/iptables-legacy", "/sbin/iptables"}) {
      if (access(path, X_OK) != 0) continue;
      const auto rules =
          agent::RunProgram({.arguments = {path, "-S"}, .time_limit = kTrialPatience});
      if (rules && rules->exit_code == 0) facts.iptables_legacy_rules = rules->out;
      break;
    }
  }
  std::error_code error;
  if (auto kept = agent::LoadAddressRanges(options.data_dir); kept)
    facts.kept_ranges = *kept;
  else if (fs::is_directory(options.data_dir, error) && CheckOwner(options.data_dir).ok())
    // else the disk's finding says it
    facts.ranges_error = kept.error().message();
  // A cluster that began before ranges were kept has the usual ones.
  if (!facts.kept_ranges && facts.ranges_error.empty() && facts.clock.keys_from)
    facts.kept_ranges = agent::AddressRanges();
  if (auto netlink = agent::Netlink::Open(); netlink) {
    auto found = netlink->ListDestinations(agent::NodeNetworkConfig().bridge);
    if (found) facts.destinations = *std::move(found);
  }
}

// --- disk, clock, GPU

std::string FilesystemName(int64_t magic) {
  constexpr std::array<std::pair<int64_t, const char*>, 14> kNames = {{{0xEF53, "ext4"},
                                                                       {0x58465342, "xfs"},
                                                                       {0x9123683E, "btrfs"},
                                                                       {0x01021994, "tmpfs"},
                                                                       {0x794C7630, "overlay"},
                                                                       {0x6969, "nfs"},
                                                                       {0x4D44, "vfat"},
                                                                       {0xFF534D42, "cifs"},
                                                                       {0xFE534D42, "smb2"},
                                                                       {0x01021997, "9p"},
                                                                       {0x65735546, "fuse"},
                                                                       {0x2FC12FC1, "zfs"},
                                                                       {0xF2F52010, "f2fs"},
                                                                       {0x73717368, "squashfs"}}};
  for (const auto& [number, name] : kNames) {
    if (number == (magic & 0xFFFFFFFF)) return name;
  }
  return fmt::format("a file system of type {:#x}", magic & 0xFFFFFFFF);
}

DiskFacts ProbeDisk(const std::string& data_dir) {
  DiskFacts facts;
  fs::path path = data_dir;
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  facts.path = path;
  Status place = CheckOwner(data_dir);
  if (place.ok()) place = CheckPlace(data_dir);
  if (!place.ok()) {
    facts.error = place.message();
    return facts;
  }
  if (!fs::is_directory(path, error)) return facts;
  struct statvfs room = {};
  struct statfs type = {};
  if (statvfs(path.c_str(), &room) != 0 || statfs(path.c_str(), &type) != 0) {
    facts.error = Errno(facts.path);
    return facts;
  }
  const auto unit = static_cast<int64_t>(room.f_frsize);
  facts.filesystem = FilesystemName(type.f_type);
  facts.total_bytes = unit * static_cast<int64_t>(room.f_blocks);
  facts.free_bytes = unit * static_cast<int64_t>(room.f_bavail);
  facts.total_inodes = static_cast<int64_t>(room.f_files);
  facts.free_inodes = static_cast<int64_t>(room.f_favail);
  if ((room.f_flag & ST_RDONLY) != 0)
    facts.error = fmt::format("{}: {}", facts.path, std::strerror(EROFS));
  else if (access(path.c_str(), W_OK | X_OK) != 0)
    facts.error = fmt::format("--data-dir {}: {}", data_dir, Errno(facts.path));
  return facts;
}

ClockFacts ProbeClock(const std::string& data_dir) {
  ClockFacts facts;
  facts.now = RealClock().Wall();
  timex state = {};
  facts.synchronised = adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
  if (const auto pem = ReadSmallFile(data_dir + "/pki/ca.crt"); pem) {
    if (const auto certificate = net::ReadCertificate(*pem); certificate)
      facts.keys_from = certificate->not_before;
  }
  return facts;
}

std::string DescribeDriver() {
  auto nvml = gpu::Nvml::Open(gpu::NvmlLibrary());
  if (!nvml) return "!" + nvml.error().message();
  const auto inventory = nvml->Read(true);
  if (!inventory) return "!" + inventory.error().message();
  if (!inventory->fault.empty()) return "!" + inventory->fault;
  std::map<std::string, int> models;
  for (const gpu::Gpu& gpu : inventory->gpus) {
    if (!gpu.fault.empty()) return fmt::format("!GPU {}: {}", gpu.index, gpu.fault);
    ++models[gpu.model];
  }
  std::vector<std::string> parts;
  for (const auto& [model, count] : models) parts.push_back(fmt::format("{} x {}", count, model));
  return fmt::format("driver {}: {}", inventory->driver_version,
                     parts.empty() ? "no GPU" : Join(parts, ", "));
}

GpuFacts ProbeGpu(bool ask_driver) {
  GpuFacts facts;
  std::error_code error;
  for (const auto& device : fs::directory_iterator("/sys/bus/pci/devices", error)) {
    const auto vendor = ReadSmallFile(device.path() / "vendor");
    const auto kind = ReadSmallFile(device.path() / "class");
    if (vendor && kind && vendor->starts_with("0x10de") && kind->starts_with("0x03"))
      ++facts.pci_devices;
  }
  for (const auto& file : fs::directory_iterator("/dev", error)) {
    const std::string name = file.path().filename();
    if (name.starts_with("nvidia") && ParseInt(std::string_view(name).substr(6)))
      ++facts.device_files;
  }
  if (!ask_driver || facts.device_files == 0) return facts;
  facts.asked = true;
  const Result<std::string> answer = InChild(kDriverPatience, DescribeDriver);
  if (!answer)
    facts.error = "the driver gives " + answer.error().message();
  else if (answer->empty())
    facts.error = "the driver's library died";
  else if (answer->starts_with("!"))
    facts.error = answer->substr(1);
  else
    facts.summary = *answer;
  return facts;
}

std::string FindPython() {
  // Where a pod looks that says nothing else.
  for (const char* file : {"/usr/local/bin/python3", "/usr/bin/python3"}) {
    if (access(file, X_OK) == 0) return file;
  }
  return "";
}

void ProbeSysctls(HostFacts& facts) {
  for (const char* name :
       {"fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "kernel.pid_max"}) {
    const auto text = ReadSmallFile("/proc/sys/" + ReplaceAll(name, ".", "/"));
    const auto value = text ? ParseInt(Trim(*text)) : std::nullopt;
    if (value) facts.sysctls[name] = *value;
  }
}

}  // namespace

HostFacts ProbeHost(const UpOptions& options, bool ask_driver) {
  HostFacts facts;
  facts.user.id = geteuid();
  const passwd* user = getpwuid(facts.user.id);
  facts.user.name = user != nullptr ? user->pw_name : "?";
  facts.user.in_user_namespace = agent::InUserNamespace();
  facts.running = InstanceLock::Holder(options.data_dir);
  ProbeNamespaces(facts);
  ProbeSysctls(facts);
  facts.cgroups = ProbeCgroups(facts.user.is_root());
  facts.clock = ProbeClock(options.data_dir);
  ProbeNetwork(options, facts);
  facts.disk = ProbeDisk(options.data_dir);
  facts.gpu = ProbeGpu(ask_driver);
  facts.python = FindPython();
  facts.missing_image_programs = agent::MissingImagePrograms();
  facts.nfs = agent::ProbeNfs();
  if (const auto program = agent::FindOutsideProgram()) facts.outside_program = program->path;
  facts.outside = {!facts.outside_program.empty(), access("/dev/net/tun", R_OK | W_OK) == 0};
  facts.ports =
      ProbePorts(options, RangesFor(facts).value_or(agent::AddressRanges()), facts.user.is_root());
  return facts;
}

}  // namespace muster::app
