#include "app/doctor/checks.h"

#include <gtest/gtest.h>

namespace muster::app {
namespace {

agent::Ipv4Prefix Range(std::string_view text) { return agent::Ipv4Prefix::Parse(text).value(); }

// A machine on which everything is well.
HostFacts GoodMachine() {
  HostFacts facts;
  facts.user.name = "root";
  facts.cgroups.version = 2;
  facts.nft = "/usr/sbin/nft";
  facts.destinations = {Range("0.0.0.0/0"), Range("192.168.1.0/24"), Range("127.0.0.0/8")};
  facts.ports = {{"API server", "127.0.0.1:6443", "muster up --listen X", false, "", ""}};
  facts.disk = {"/var/lib", "ext4", 500'000'000'000, 100'000'000'000, 1'000'000, 900'000, ""};
  facts.clock.now = ParseTime("2026-03-01T00:00:00Z").value();
  facts.python = "/usr/bin/python3";
  return facts;
}

Finding Of(const HostFacts& facts, std::string_view subject) {
  for (Finding& finding : Examine(facts)) {
    if (finding.subject == subject) return finding;
  }
  ADD_FAILURE() << "no finding about " << subject;
  return {};
}

std::string Text(const Finding& finding) {
  const char* words[] = {"OK", "WARN", "FAIL"};
  return std::string(words[static_cast<int>(finding.verdict)]) + " " + finding.message + " | " +
         finding.fix;
}

// What one fact makes of the good machine.
template <class Change>
std::string After(std::string_view subject, Change change) {
  HostFacts facts = GoodMachine();
  change(facts);
  return Text(Of(facts, subject));
}

TEST(Doctor, AGoodMachineIsFine) {
  for (const Finding& finding : Examine(GoodMachine())) {
    EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.subject << ": " << finding.message;
    EXPECT_EQ(finding.fix, "");
    EXPECT_NE(finding.message, "");
  }
  EXPECT_FALSE(AnyFailed(Examine(GoodMachine())));
}

TEST(Doctor, NamespacesOfRootMustWork) {
  EXPECT_EQ(After("namespaces", [](HostFacts& f) { f.namespaces.error = "unshare: no"; }),
            "FAIL cannot be made: unshare: no | run muster outside of a container, or in one that "
            "is privileged");
}

HostFacts OfUser(HostFacts facts = GoodMachine()) {
  facts.user = {1000, "ada"};
  facts.outside = {true, true};
  facts.outside_program = "/usr/bin/pasta";
  return facts;
}

TEST(Doctor, RefusedUserNamespacesNameTheSwitch) {
  HostFacts facts = OfUser();
  facts.namespaces = {.max_user_namespaces = "0", .error = "unshare: no"};
  EXPECT_EQ(Text(Of(facts, "namespaces")),
            "WARN user namespaces are switched off (user.max_user_namespaces is 0): pods are plain "
            "processes of this user | sudo sysctl -w user.max_user_namespaces=16384");
  facts.namespaces = {.apparmor_restricts = "1", .error = "mount /: Permission denied"};
  EXPECT_NE(Text(Of(facts, "namespaces")).find("AppArmor takes all rights"), std::string::npos);
  EXPECT_EQ(Of(facts, "namespaces").fix,
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
}

TEST(Doctor, Cgroups) {
  EXPECT_EQ(After("cgroups", [](HostFacts& f) { f.cgroups = {0, {}, true}; }),
            "WARN none is mounted: memory and CPU limits of pods are not enforced | mount -t "
            "cgroup2 cgroup2 /sys/fs/cgroup");
  EXPECT_EQ(After("cgroups", [](HostFacts& f) { f.cgroups.missing = {"memory"}; }),
            "WARN version 2 without memory: those limits of pods are not enforced | start the "
            "kernel with cgroup_enable=memory");
  const auto of_user = [](CgroupFacts cgroups) {
    HostFacts facts = OfUser();
    facts.cgroups = std::move(cgroups);
    return Text(Of(facts, "cgroups"));
  };
  EXPECT_EQ(of_user({2, {}, true}), "OK version 2, delegated | ");
  EXPECT_EQ(of_user({2, {}, false}),
            "WARN limits of memory and CPU are not enforced: no cgroup is delegated to this user | "
            "systemd-run --user --scope -p Delegate=yes muster up --detach");
  EXPECT_NE(of_user({2, {"cpu"}, true}).find("limits of CPU are not enforced"), std::string::npos);
  EXPECT_NE(of_user({1, {}, false}).find("systemd.unified_cgroup_hierarchy=1"), std::string::npos);
}

// The Node has conditions for these, and `up` prints them when it runs.
TEST(Doctor, WhatTheNodeSaysIsNotSaidBeforeItToo) {
  HostFacts facts = OfUser();
  facts.cgroups.delegated = false;
  facts.outside = {};
  for (const Finding& finding : Examine(facts)) {
    EXPECT_EQ(finding.node_says, finding.verdict == Verdict::kWarn) << finding.subject;
  }
}

TEST(Doctor, TheOutsideOfAnOrdinaryUser) {
  HostFacts facts = OfUser();
  EXPECT_EQ(Text(Of(facts, "outside network")), "OK /usr/bin/pasta | ");
  facts.outside.device = false;
  EXPECT_EQ(Of(facts, "outside network").fix, "sudo chmod 666 /dev/net/tun");
  facts.outside.program = false;
  EXPECT_EQ(Of(facts, "outside network").fix, "sudo apt-get install passt");
  facts.namespaces.error = "no";
  EXPECT_EQ(Text(Of(facts, "outside network")), "OK pods are on the machine's own | ");
}

TEST(Doctor, AFixIsForWhoeverAsks) {
  const auto fix = [](const char* subject, auto change) {
    HostFacts facts = GoodMachine();
    facts.overlay_error = "overlay: Operation not permitted";
    facts.nft_error = "no";
    facts.sysctls["kernel.pid_max"] = 4096;
    change(facts);
    return Of(facts, subject).fix;
  };
  const auto root = [](HostFacts&) {};
  const auto user = [](HostFacts& f) { f.user = {1000, "ada"}; };
  const auto inside = [](HostFacts& f) { f.user.in_user_namespace = true; };
  EXPECT_EQ(fix("overlay", root), "modprobe overlay");
  EXPECT_EQ(fix("overlay", user), "sudo modprobe overlay (Linux 5.11 or later)");
  EXPECT_EQ(fix("overlay", inside),
            "on the host, as its root: modprobe overlay (Linux 5.11 or later)");
  EXPECT_EQ(fix("nft", inside), "on the host, as its root: modprobe nf_tables");
  EXPECT_EQ(fix("sysctls", inside), "on the host, as its root: sysctl -w kernel.pid_max=32768");
  EXPECT_EQ(fix("sysctls", user), "sudo sysctl -w kernel.pid_max=32768");
}

TEST(Doctor, ForwardingThatIsOffIsSwitchedOnUnlessNobodyMay) {
  EXPECT_TRUE(
      After("forwarding", [](HostFacts& f) { f.forwarding = false; }).starts_with("OK off"));
  EXPECT_EQ(After("forwarding", [](HostFacts& f) { f.forwarding = f.forwarding_writable = false; }),
            "FAIL off, and /proc/sys is read-only: pods could reach nothing | on the host: sysctl "
            "-w net.ipv4.ip_forward=1");
}

constexpr const char* kDocker = R"(table ip nat {
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
	}
}
table ip filter {
	chain DOCKER-USER {
		counter packets 0 bytes 0 return
	}
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
		counter packets 5 bytes 300 jump DOCKER-USER
		oifname "docker0" counter packets 0 bytes 0 accept
	}
}
table ip6 filter {
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
	}
}
)";

TEST(Doctor, DockersPolicyIsFound) {
  EXPECT_EQ(DroppingChains(kDocker), std::vector<std::string>{"table ip filter, chain FORWARD"});
  EXPECT_EQ(After("forward policy", [](HostFacts& f) { f.nft_rules = kDocker; }),
            "WARN table ip filter, chain FORWARD drops forwarded packets: pods could reach neither "
            "each other nor the outside | iptables -I DOCKER-USER -i muster0 -j ACCEPT; iptables "
            "-I DOCKER-USER -o muster0 -j ACCEPT");
  std::string half = kDocker;
  half.insert(half.find("\t\tcounter packets 0 bytes 0 return"),
              "\t\tiifname \"muster0\" counter packets 7 bytes 420 accept\n");
  EXPECT_EQ(DroppingChains(half).size(), 1u) << "answers are still dropped";
  half.insert(half.find("\t\tcounter packets 0 bytes 0 return"),
              "\t\toifname \"muster0\" counter packets 7 bytes 420 accept\n");
  EXPECT_EQ(DroppingChains(half), std::vector<std::string>());
}

constexpr const char* kOwnFirewall = R"(table inet fire {
	chain through {
		type filter hook forward priority filter; policy accept;
		ct state established,related accept
		counter packets 1 bytes 60 reject with icmpx admin-prohibited
	}
}
)";

TEST(Doctor, OtherFirewalls) {
  EXPECT_EQ(DroppingChains(kOwnFirewall),
            std::vector<std::string>{"table inet fire, chain through"});
  EXPECT_NE(After("forward policy", [](HostFacts& f) { f.nft_rules = kOwnFirewall; })
                .find("| nft insert rule inet fire through iifname muster0 accept; nft insert rule "
                      "inet fire through oifname muster0 accept"),
            std::string::npos);
  EXPECT_EQ(DroppingChains("table inet fire {\n\tchain in {\n\t\ttype filter hook input priority "
                           "filter; policy drop;\n\t}\n}\n"),
            std::vector<std::string>())
      << "what is not forwarded is not ours";
  EXPECT_EQ(DroppingChains("}\n{ chain\ntable\nchain a b c\n"), std::vector<std::string>());
}

TEST(Doctor, LegacyIptables) {
  const std::string drop = "-P INPUT ACCEPT\n-P FORWARD DROP\n";
  EXPECT_FALSE(LegacyDrops(""));
  EXPECT_FALSE(LegacyDrops("-P FORWARD ACCEPT\n-P INPUT DROP\n"));
  EXPECT_TRUE(LegacyDrops(drop));
  EXPECT_TRUE(LegacyDrops(drop + "-A FORWARD -i muster0 -j ACCEPT\n"));
  EXPECT_FALSE(LegacyDrops(drop + "-A DOCKER-USER -i muster0 -j ACCEPT\n-A FORWARD -o muster0 -j "
                                  "ACCEPT\n"));
  EXPECT_NE(After("forward policy", [&](HostFacts& f) { f.iptables_legacy_rules = drop; })
                .find("| iptables-legacy -I FORWARD -i muster0"),
            std::string::npos);
}

TEST(Doctor, RangesGiveWayToRoutesOnlyAtTheFirstStart) {
  EXPECT_EQ(
      After(kRangesSubject, [](HostFacts& f) { f.destinations.push_back(Range("10.42.8.0/24")); }),
      "OK pods 10.43.0.0/16, Services 10.44.0.0/16: chosen because the usual ones overlap "
      "the route to 10.42.8.0/24 | ");
  EXPECT_NE(
      After(kRangesSubject, [](HostFacts& f) { f.destinations.push_back(Range("10.43.0.7/32")); })
          .find("pods 10.42.0.0/16, Services 10.44.0.0/16"),
      std::string::npos);
  EXPECT_EQ(After(kRangesSubject,
                  [](HostFacts& f) {
                    f.kept_ranges = agent::AddressRanges();
                    f.destinations.push_back(Range("10.43.0.0/24"));
                  }),
            "WARN 10.43.0.0/16 of this cluster overlaps the route to 10.43.0.0/24: one hides the "
            "other | take the route away, or let a new cluster choose: muster down --purge && "
            "muster up");
  // A VPN that takes everything in two halves.
  EXPECT_EQ(After(kRangesSubject,
                  [](HostFacts& f) {
                    f.destinations.push_back(Range("0.0.0.0/1"));
                    f.destinations.push_back(Range("128.0.0.0/1"));
                  }),
            "OK pods 10.42.0.0/16, Services 10.43.0.0/16 | ");
  EXPECT_EQ(After(kRangesSubject,
                  [](HostFacts& f) {
                    f.destinations = {Range("10.0.0.0/8"), Range("172.16.0.0/12"),
                                      Range("100.64.0.0/10"), Range("198.18.0.0/15")};
                  }),
            "FAIL every private range overlaps a route of this machine | remove a route (ip "
            "route), or disconnect a VPN for the first start");
}

TEST(Doctor, TakenPortsNameTheirHolder) {
  EXPECT_EQ(After("API server port",
                  [](HostFacts& f) {
                    f.ports[0].taken = true;
                    f.ports[0].holder = "nginx (process 12)";
                  }),
            "FAIL 127.0.0.1:6443 is taken by nginx (process 12) | muster up --listen X");
  // A cluster of one's own that lives elsewhere: bad news for who starts another, and for nobody
  // else.
  const auto own = [](bool about_to_start) {
    return After("API server port", [&](HostFacts& f) {
      f.ports[0].taken = true;
      f.ports[0].holder = "muster (process 12)";
      f.ports[0].cluster = "/data/one";
      f.about_to_start = about_to_start;
    });
  };
  EXPECT_EQ(own(true),
            "FAIL 127.0.0.1:6443 is taken by muster (process 12) | muster up --listen X");
  EXPECT_EQ(
      own(false),
      "WARN 127.0.0.1:6443 is in use by your cluster in /data/one, muster (process 12) | none "
      "is needed for that one; a second one: muster up --listen X");
  EXPECT_EQ(After("ports",
                  [](HostFacts& f) {
                    f.ports[0].taken = true;
                    f.running = 77;
                  }),
            "OK in use by this cluster (process 77) | ");
}

TEST(Doctor, Disk) {
  const auto disk = [](auto change) {
    return After("disk", [&](HostFacts& f) { change(f.disk); });
  };
  EXPECT_EQ(disk([](DiskFacts& d) { d.free_bytes = kMinFreeDiskBytes - 1; }),
            "FAIL /var/lib has 33 MB free | make room, or name a directory elsewhere: --data-dir "
            "DIR");
  EXPECT_TRUE(disk([](DiskFacts& d) { d.free_bytes = kMinFreeDiskBytes; }).starts_with("WARN"));
  EXPECT_EQ(disk([](DiskFacts& d) { d.free_inodes = kMinFreeInodes - 1; }),
            "FAIL /var/lib has room for 999 more files (inodes) | delete files, or name a "
            "directory elsewhere: --data-dir DIR");
  EXPECT_TRUE(disk([](DiskFacts& d) { d.free_inodes = kMinFreeInodes; }).starts_with("OK"));
  EXPECT_TRUE(disk([](DiskFacts& d) { d.total_inodes = d.free_inodes = 0; }).starts_with("OK"));
  EXPECT_TRUE(disk([](DiskFacts& d) { d.error = "read-only"; }).starts_with("FAIL"));
  EXPECT_TRUE(disk([](DiskFacts& d) { d.filesystem = "nfs"; }).starts_with("FAIL"));
  EXPECT_TRUE(disk([](DiskFacts& d) { d.filesystem = "tmpfs"; }).starts_with("WARN"));
}

TEST(Doctor, Clock) {
  const auto at = [](const char* now, const char* keys_from, bool synchronised = true) {
    return After("clock", [&](HostFacts& f) {
      f.clock = {ParseTime(now).value(), ParseTime(keys_from), synchronised};
    });
  };
  EXPECT_TRUE(at("1970-01-01T00:05:00Z", "").starts_with("FAIL says 1970-01-01T00:05:00Z"));
  EXPECT_TRUE(at("2199-01-01T00:05:00Z", "").starts_with("FAIL"));
  EXPECT_EQ(
      at("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
      "FAIL says 2026-01-01T00:00:00Z, but this cluster's certificate begins at "
      "2026-01-02T00:00:00Z | timedatectl set-ntp true, or by hand: date -s '2026-01-31 12:00'");
  EXPECT_TRUE(at("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z").starts_with("OK"));
  EXPECT_TRUE(at("2026-01-02T00:00:00Z", "", false).starts_with("WARN"));
}

TEST(Doctor, Programs) {
  EXPECT_TRUE(After("nft", [](HostFacts& f) { f.nft = ""; }).starts_with("FAIL missing"));
  EXPECT_TRUE(After("nft", [](HostFacts& f) { f.nft_error = "no"; }).starts_with("FAIL"));
  EXPECT_TRUE(After("python3", [](HostFacts& f) { f.python = ""; }).starts_with("WARN missing"));
  EXPECT_EQ(After("overlay", [](HostFacts& f) { f.overlay_error = "overlay: No such device"; }),
            "FAIL cannot be mounted: overlay: No such device | modprobe overlay");
  // Without it, or without namespaces, an ordinary user's pods are plain processes.
  EXPECT_EQ(After("overlay",
                  [](HostFacts& f) {
                    f.user = {1000, "ada"};
                    f.overlay_error = "overlay: Operation not permitted";
                  })
                .substr(0, 5),
            "WARN ");
  EXPECT_EQ(After("nft",
                  [](HostFacts& f) {
                    f.user = {1000, "ada"};
                    f.namespaces.error = "unshare: no";
                    f.nft.clear();
                  })
                .substr(0, 2),
            "OK");
}

TEST(Doctor, ProgramsForImages) {
  EXPECT_EQ(After("images", [](HostFacts&) {}), "OK skopeo and umoci fetch them | ");
  EXPECT_EQ(After("images", [](HostFacts& f) { f.missing_image_programs = {"skopeo", "umoci"}; }),
            "WARN no skopeo and no umoci: pods with image \"none\" run, others wait | apt-get "
            "install skopeo umoci");
}

TEST(Doctor, VolumesOfServersAreAHint) {
  const auto nfs = [](bool kernel, bool helper) {
    return After("volumes", [&](HostFacts& f) { f.nfs = {kernel, helper, "6.1.0"}; });
  };
  EXPECT_EQ(nfs(true, true), "OK of all kinds, NFS too | ");
  EXPECT_TRUE(
      nfs(false, true)
          .starts_with("OK of all kinds but NFS: the kernel 6.1.0 has no NFS client: install"));
  EXPECT_TRUE(
      nfs(true, false)
          .starts_with("OK of all kinds but NFS: mount.nfs is missing: install nfs-common"));
  EXPECT_EQ(After("volumes", [](HostFacts& f) { f.user.in_user_namespace = true; }),
            "OK of all kinds but NFS, which only the machine's root may mount | ");
}

TEST(Doctor, Gpus) {
  const auto gpu = [](GpuFacts facts) {
    return After("GPU", [&](HostFacts& f) { f.gpu = facts; });
  };
  EXPECT_EQ(gpu({}), "OK no NVIDIA GPU | ");
  EXPECT_TRUE(
      gpu({2, 0, false, "", ""}).starts_with("WARN 2 NVIDIA GPU(s) on the PCI bus without"));
  EXPECT_TRUE(gpu({2, 2, false, "", ""}).starts_with("OK 2 NVIDIA"));
  EXPECT_TRUE(gpu({2, 2, true, "no library", ""}).starts_with("WARN no library"));
  EXPECT_EQ(gpu({2, 2, true, "", "driver 580: 2 x H100"}), "OK driver 580: 2 x H100 | ");
}

TEST(Doctor, Sysctls) {
  EXPECT_EQ(After("sysctls", [](HostFacts& f) { f.sysctls["kernel.pid_max"] = 4096; }),
            "WARN kernel.pid_max is 4096: large jobs cannot start all their threads | sysctl -w "
            "kernel.pid_max=32768");
}

TEST(Doctor, AnOrdinaryUsersNodeHasItsOwnRules) {
  HostFacts facts = GoodMachine();
  facts.user = {1000, "ada"};
  for (const Finding& finding : Examine(facts))
    EXPECT_FALSE(finding.subject.starts_with("forward")) << finding.subject;
}

}  // namespace
}  // namespace muster::app
