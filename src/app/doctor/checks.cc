#include "app/doctor/checks.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/core.h>

#include "agent/network/host_network.h"
#include "base/strings.h"

namespace muster::app {
namespace {

Finding Ok(std::string subject, std::string message) {
  return {Verdict::kOk, std::move(subject), std::move(message), ""};
}
Finding Warn(std::string subject, std::string message, std::string fix) {
  return {Verdict::kWarn, std::move(subject), std::move(message), std::move(fix)};
}
Finding Fail(std::string subject, std::string message, std::string fix) {
  return {Verdict::kFail, std::move(subject), std::move(message), std::move(fix)};
}

Finding OfNode(std::string subject, const agent::NodeLimitation& limitation) {
  return {Verdict::kWarn, std::move(subject), limitation.message, limitation.remedy, true};
}

// As whoever asks can run it. Root of a user namespace is not the root that the kernel asks for.
std::string ByRoot(const HostFacts& facts, const std::string& command) {
  if (facts.user.in_user_namespace) return "on the host, as its root: " + command;
  return facts.user.is_root() ? command : "sudo " + command;
}

std::string Size(int64_t bytes) {
  return bytes >= 10'000'000'000 ? fmt::format("{} GB", bytes / 1'000'000'000)
                                 : fmt::format("{} MB", bytes / 1'000'000);
}

Finding CheckUser(const HostFacts& facts) {
  if (facts.user.is_root()) {
    return Ok("user", facts.user.in_user_namespace ? "root of a user namespace, not of the machine"
                                                   : "root");
  }
  return Ok("user", fmt::format("{} (uid {}), not root: pods run in user namespaces of their own",
                                facts.user.name, facts.user.id));
}

Finding CheckNamespaces(const HostFacts& facts) {
  const std::string& error = facts.namespaces.error;
  if (error.empty()) return Ok("namespaces", "can be made");
  if (facts.user.is_root()) {
    return Fail("namespaces", "cannot be made: " + error,
                "run muster outside of a container, or in one that is privileged");
  }
  const agent::Refusal refusal = agent::ExplainRefusal(facts.namespaces);
  return {Verdict::kWarn, "namespaces", refusal.why + ": pods are plain processes of this user",
          refusal.remedy, true};
}

Finding CheckCgroups(const HostFacts& facts) {
  const CgroupFacts& cgroups = facts.cgroups;
  const std::string version = fmt::format("version {}", cgroups.version);
  const auto missing = [&cgroups](const char* name) {
    return std::ranges::find(cgroups.missing, name) != cgroups.missing.end();
  };
  if (!facts.user.is_root() && cgroups.version > 0) {
    const auto limitation = agent::MissingLimits({.path = cgroups.delegated ? "one" : "",
                                                  .memory = cgroups.delegated && !missing("memory"),
                                                  .cpu = cgroups.delegated && !missing("cpu"),
                                                  .unified = cgroups.version == 2});
    return limitation ? OfNode("cgroups", *limitation) : Ok("cgroups", version + ", delegated");
  }
  if (cgroups.version == 0) {
    return Warn("cgroups", "none is mounted: memory and CPU limits of pods are not enforced",
                ByRoot(facts, "mount -t cgroup2 cgroup2 /sys/fs/cgroup"));
  }
  if (!cgroups.missing.empty()) {
    const std::string names = Join(cgroups.missing, ", ");
    return Warn("cgroups",
                fmt::format("{} without {}: those limits of pods are not enforced", version, names),
                fmt::format("start the kernel with cgroup_enable={}", Join(cgroups.missing, ",")));
  }
  return Ok("cgroups", version);
}

Finding CheckForwarding(const HostFacts& facts) {
  const char* subject = "forwarding";
  if (facts.forwarding) return Ok(subject, "on");
  if (!facts.forwarding_writable && facts.user.is_root()) {
    return Fail(subject, "off, and /proc/sys is read-only: pods could reach nothing",
                "on the host: sysctl -w net.ipv4.ip_forward=1");
  }
  return Ok(subject, "off: muster up switches it on for its pods, muster down off again");
}

Finding CheckForwardPolicy(const HostFacts& facts) {
  const char* subject = "forward policy";
  const std::string effect = ": pods could reach neither each other nor the outside";
  const std::string bridge = agent::NodeNetworkConfig().bridge;
  if (LegacyDrops(facts.iptables_legacy_rules)) {
    return Warn(subject, "iptables-legacy drops forwarded packets" + effect,
                fmt::format("iptables-legacy -I FORWARD -i {0} -j ACCEPT; iptables-legacy -I "
                            "FORWARD -o {0} -j ACCEPT",
                            bridge));
  }
  const std::vector<std::string> chains = DroppingChains(facts.nft_rules);
  if (chains.empty()) return Ok(subject, "nothing drops what pods send");
  const std::string message =
      fmt::format("{} drops forwarded packets{}", Join(chains, "; "), effect);
  const std::string& first = chains.front();
  std::string fix;
  if (first.contains("firewalld")) {
    fix = fmt::format(
        "firewall-cmd --permanent --zone=trusted --add-interface={} && firewall-cmd --reload",
        bridge);
  } else if (first == "table ip filter, chain FORWARD") {
    // Docker leaves its own chain for others alone when it starts again.
    const char* chain = facts.nft_rules.contains("chain DOCKER-USER") ? "DOCKER-USER" : "FORWARD";
    fix = fmt::format("iptables -I {0} -i {1} -j ACCEPT; iptables -I {0} -o {1} -j ACCEPT", chain,
                      bridge);
  } else {
    const size_t comma = first.find(", chain ");
    const std::string place = first.substr(6, comma - 6) + " " + first.substr(comma + 8);
    fix = fmt::format(
        "nft insert rule {0} iifname {1} accept; nft insert rule {0} oifname {1} accept", place,
        bridge);
  }
  return Warn(subject, message, fix);
}

// A route of everything, or of half of everything as VPNs set it, is no network of somebody's.
bool IsDefaultRoute(const agent::Ipv4Prefix& range) { return range.length < 8; }

std::vector<agent::Ipv4Prefix> Networks(const HostFacts& facts) {
  std::vector<agent::Ipv4Prefix> out;
  for (const agent::Ipv4Prefix& range : facts.destinations) {
    if (!IsDefaultRoute(range)) out.push_back(range);
  }
  return out;
}

std::string Overlapping(const HostFacts& facts, const agent::Ipv4Prefix& range) {
  for (const agent::Ipv4Prefix& network : Networks(facts)) {
    if (network.Overlaps(range)) return network.ToString();
  }
  return "";
}

Finding CheckRanges(const HostFacts& facts) {
  const char* subject = kRangesSubject;
  if (!facts.ranges_error.empty()) {
    return Fail(subject, facts.ranges_error, "put the lines back, or start a new data directory");
  }
  const std::optional<agent::AddressRanges> ranges = RangesFor(facts);
  if (!ranges) {
    return Fail(subject, "every private range overlaps a route of this machine",
                "remove a route (ip route), or disconnect a VPN for the first start");
  }
  const std::string chosen =
      fmt::format("pods {}, Services {}", ranges->pods.ToString(), ranges->services.ToString());
  if (facts.kept_ranges) {
    for (const agent::Ipv4Prefix& range : {ranges->pods, ranges->services}) {
      const std::string network = Overlapping(facts, range);
      if (network.empty()) continue;
      return Warn(subject,
                  fmt::format("{} of this cluster overlaps the route to {}: one hides the other",
                              range.ToString(), network),
                  "take the route away, or let a new cluster choose: muster down --purge && muster "
                  "up");
    }
    return Ok(subject, chosen);
  }
  const agent::AddressRanges usual;
  if (*ranges == usual) return Ok(subject, chosen);
  const std::string pods = Overlapping(facts, usual.pods);
  return Ok(subject, fmt::format("{}: chosen because the usual ones overlap the route to {}",
                                 chosen, pods.empty() ? Overlapping(facts, usual.services) : pods));
}

Finding CheckPort(const PortFacts& port, bool about_to_start) {
  const std::string subject = port.what + " port";
  if (!port.taken) return Ok(subject, port.where + " is free");
  if (!port.cluster.empty() && !about_to_start) {
    return Warn(subject,
                fmt::format("{} is in use by your cluster in {}, {}", port.where, port.cluster,
                            port.holder),
                "none is needed for that one; a second one: " + port.change);
  }
  return Fail(
      subject,
      fmt::format("{} is taken{}", port.where, port.holder.empty() ? "" : " by " + port.holder),
      port.change);
}

constexpr std::array<std::string_view, 6> kUnfitFilesystems = {"nfs",  "cifs", "smb2",
                                                               "vfat", "9p",   "overlay"};

Finding CheckDisk(const DiskFacts& disk) {
  const char* subject = "disk";
  const std::string elsewhere = "name a directory elsewhere: --data-dir DIR";
  if (!disk.error.empty()) return Fail(subject, disk.error, elsewhere);
  if (std::ranges::find(kUnfitFilesystems, disk.filesystem) != kUnfitFilesystems.end()) {
    return Fail(subject,
                fmt::format("{} is on {}, which cannot hold the store and the layers of pods",
                            disk.path, disk.filesystem),
                "name a directory on a local disk: --data-dir DIR");
  }
  if (disk.free_bytes < kMinFreeDiskBytes) {
    return Fail(subject, fmt::format("{} has {} free", disk.path, Size(disk.free_bytes)),
                "make room, or " + elsewhere);
  }
  if (disk.total_inodes > 0 && disk.free_inodes < kMinFreeInodes) {
    return Fail(subject,
                fmt::format("{} has room for {} more files (inodes)", disk.path, disk.free_inodes),
                "delete files, or " + elsewhere);
  }
  const std::string free =
      fmt::format("{} on {}: {} free", disk.path, disk.filesystem, Size(disk.free_bytes));
  if (disk.free_bytes < disk.total_bytes / 10 && disk.free_bytes < int64_t{4} << 30) {
    return Warn(subject, free + ", pods will be evicted soon", "make room, or " + elsewhere);
  }
  if (disk.filesystem == "tmpfs")
    return Warn(subject, free + ", lost when the machine restarts", elsewhere);
  return Ok(subject, free);
}

Finding CheckClock(const HostFacts& facts) {
  const ClockFacts& clock = facts.clock;
  const char* subject = "clock";
  const std::string set =
      ByRoot(facts, "timedatectl set-ntp true, or by hand: date -s '2026-01-31 12:00'");
  const std::string now = FormatTime(clock.now);
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(clock.now));
  if (date.year() < std::chrono::year(2025) || date.year() > std::chrono::year(2100))
    return Fail(subject, fmt::format("says {}: certificates made now would hold for nobody", now),
                set);
  if (clock.keys_from && clock.now < *clock.keys_from) {
    return Fail(subject,
                fmt::format("says {}, but this cluster's certificate begins at {}", now,
                            FormatTime(*clock.keys_from)),
                set);
  }
  if (!clock.synchronised)
    return Warn(subject, now + ", not synchronised (NTP)",
                ByRoot(facts, "timedatectl set-ntp true"));
  return Ok(subject, now + ", synchronised");
}

Finding CheckNft(const HostFacts& facts) {
  if (!facts.user.is_root() && !facts.namespaces.error.empty())
    return Ok("nft", "not needed: pods have no network of their own");
  if (facts.nft.empty()) {
    return Fail("nft", "missing: Services need it",
                ByRoot(facts, "apt-get install nftables, or use the bundle, which brings it"));
  }
  if (!facts.nft_error.empty()) {
    return Fail("nft", fmt::format("{} does not work: {}", facts.nft, facts.nft_error),
                ByRoot(facts, "modprobe nf_tables"));
  }
  return Ok("nft", facts.nft);
}

Finding CheckOverlay(const HostFacts& facts) {
  if (facts.overlay_error.empty()) return Ok("overlay", "works");
  const std::string message = "cannot be mounted: " + facts.overlay_error;
  // Where the namespaces themselves are refused, that is what to mend.
  if (!facts.namespaces.error.empty())
    return {Verdict::kWarn, "overlay", message, "mend namespaces first", true};
  const std::string fix = ByRoot(facts, "modprobe overlay");
  if (facts.user.is_root() && !facts.user.in_user_namespace) return Fail("overlay", message, fix);
  const std::string of_user = fix + " (Linux 5.11 or later)";
  if (facts.user.is_root()) return Fail("overlay", message, of_user);
  // An ordinary user's pods are plain processes then.
  return Warn("overlay", message, of_user);
}

Finding CheckImages(const HostFacts& facts) {
  const char* subject = "images";
  if (!facts.user.is_root() && !facts.namespaces.error.empty())
    return Ok(subject, "not used: pods are plain processes");
  if (facts.missing_image_programs.empty()) return Ok(subject, "skopeo and umoci fetch them");
  return Warn(subject,
              fmt::format("no {}: pods with image \"none\" run, others wait",
                          Join(facts.missing_image_programs, " and no ")),
              ByRoot(facts, "apt-get install " + Join(facts.missing_image_programs, " ")));
}

// Few need it: what is missing is no warning.
Finding CheckNfs(const HostFacts& facts) {
  const char* subject = "volumes";
  if (!facts.user.is_root() || facts.user.in_user_namespace)
    return Ok(subject, "of all kinds but NFS, which only the machine's root may mount");
  const std::string missing = agent::MissingForNfs(facts.nfs);
  if (missing.empty()) return Ok(subject, "of all kinds, NFS too");
  return Ok(subject, fmt::format("of all kinds but NFS: {}", missing));
}

Finding CheckOutside(const HostFacts& facts) {
  const char* subject = "outside network";
  if (!facts.namespaces.error.empty()) return Ok(subject, "pods are on the machine's own");
  if (facts.outside.program && facts.outside.device) return Ok(subject, facts.outside_program);
  return OfNode(subject, agent::NoWayOut(facts.outside));
}

Finding CheckGpu(const GpuFacts& gpu) {
  if (gpu.pci_devices == 0 && gpu.device_files == 0) return Ok("GPU", "no NVIDIA GPU");
  const char* install =
      "install NVIDIA's driver (apt-get install nvidia-driver), check with nvidia-smi";
  if (gpu.device_files == 0) {
    return Warn("GPU",
                fmt::format("{} NVIDIA GPU(s) on the PCI bus without a driver", gpu.pci_devices),
                install);
  }
  if (!gpu.asked) return Ok("GPU", fmt::format("{} NVIDIA GPU(s)", gpu.device_files));
  if (!gpu.error.empty()) return Warn("GPU", gpu.error, install);
  return Ok("GPU", gpu.summary);
}

struct SysctlFloor {
  const char* name;
  int64_t least;
  const char* effect;
};
constexpr std::array<SysctlFloor, 3> kSysctlFloors = {{
    {"fs.inotify.max_user_instances", 128, "programs that watch files fail"},
    {"fs.inotify.max_user_watches", 8192, "programs that watch files fail"},
    {"kernel.pid_max", 32768, "large jobs cannot start all their threads"},
}};

Finding CheckSysctls(const HostFacts& facts) {
  for (const auto& [name, least, effect] : kSysctlFloors) {
    const auto found = facts.sysctls.find(name);
    if (found == facts.sysctls.end() || found->second >= least) continue;
    return Warn("sysctls", fmt::format("{} is {}: {}", name, found->second, effect),
                ByRoot(facts, fmt::format("sysctl -w {}={}", name, least)));
  }
  return Ok("sysctls", "suffice");
}

Finding CheckPython(const HostFacts& facts) {
  if (!facts.python.empty()) return Ok("python3", facts.python);
  return Warn("python3", "missing: the examples need it", ByRoot(facts, "apt-get install python3"));
}

}  // namespace

std::optional<agent::AddressRanges> RangesFor(const HostFacts& facts) {
  return facts.kept_ranges ? facts.kept_ranges : agent::ChooseAddressRanges(Networks(facts));
}

std::vector<Finding> Examine(const HostFacts& facts) {
  std::vector<Finding> out = {CheckUser(facts), CheckNamespaces(facts), CheckCgroups(facts)};
  // An ordinary user's node has a network of its own, with nobody else's rules.
  if (facts.user.is_root()) {
    out.push_back(CheckForwarding(facts));
    out.push_back(CheckForwardPolicy(facts));
  } else {
    out.push_back(CheckOutside(facts));
  }
  out.push_back(CheckRanges(facts));
  if (facts.running) {
    out.push_back(Ok("ports", fmt::format("in use by this cluster (process {})", *facts.running)));
  } else {
    for (const PortFacts& port : facts.ports) out.push_back(CheckPort(port, facts.about_to_start));
  }
  for (Finding finding : {CheckDisk(facts.disk), CheckClock(facts), CheckNft(facts),
                          CheckOverlay(facts), CheckImages(facts), CheckNfs(facts),
                          CheckGpu(facts.gpu), CheckSysctls(facts), CheckPython(facts)}) {
    out.push_back(std::move(finding));
  }
  return out;
}

bool AnyFailed(const std::vector<Finding>& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::kFail; });
}

}  // namespace muster::app
