#include "agent/volumes/network_volume.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <gtest/gtest.h>

#include "agent/runtime/mounts_test_support.h"
#include "agent/volumes/nfs_support.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

TEST(NetworkVolume, IsWrittenAsMountHasIt) {
  const NetworkVolume plain = NfsVolume("files.example", "/export", {}, false);
  EXPECT_EQ(plain.source, "files.example:/export");
  EXPECT_TRUE(plain.options.empty());
  EXPECT_EQ(NfsVolume("fd00::1", "/e", {}, false).source, "[fd00::1]:/e");
  EXPECT_EQ(NfsVolume("[fd00::1]", "/e", {}, false).source, "[fd00::1]:/e");
  EXPECT_EQ(NfsVolume("s", "/e", {"soft", "nfsvers=4.1", "ro"}, true).options,
            (std::vector<std::string>{"nfsvers=4.1", "ro", "soft"}));
}

TEST(NetworkVolume, OptionsComeFromSpecOrTheOlderAnnotation) {
  EXPECT_EQ(MountOptionsOf(*json::Parse(R"({"spec":{"mountOptions":["hard","ro"]}})")),
            (std::vector<std::string>{"hard", "ro"}));
  EXPECT_EQ(MountOptionsOf(*json::Parse(
                R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/mount-options":"a,b"}},)"
                R"("spec":{"mountOptions":["c"]}})")),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(MountOptionsOf(json::Obj()).empty());
}

TEST(NetworkVolume, WhatIsMissingIsNamedWithItsPackage) {
  EXPECT_EQ(MissingForNfs({.kernel = true, .helper = true, .release = "6.1"}), "");
  const std::string both = MissingForNfs({.kernel = false, .helper = false, .release = "6.1"});
  EXPECT_NE(both.find("the kernel 6.1 has no NFS client: install"), std::string::npos) << both;
  EXPECT_NE(both.find("nfs-common"), std::string::npos) << both;
  const std::string helper = MissingForNfs({.kernel = true, .helper = false, .release = "6.1"});
  EXPECT_TRUE(helper.starts_with("mount.nfs is missing: install nfs-common")) << helper;
}

// mount(8) is a script here, which mounts memory instead of what a server keeps.
class NetworkMount : public MountTest {
 protected:
  NetworkMount() {
    volume_ = NfsVolume("s", "/export", {"hard"}, false);
    volume_.shown = "v";
    volume_.target = dir_ + "/pods/u/volumes/kubernetes.io~nfs/v";
    tools_.program = dir_ + "/mount";
  }
  void Program(const std::string& script) {
    ASSERT_TRUE(
        WriteFile(tools_.program, "#!/bin/sh\necho \"$*\" >>" + dir_ + "/calls\n" + script, 0755)
            .ok());
  }
  std::string Calls() const { return ReadSmallFile(dir_ + "/calls").value_or(""); }
  Status Mount() { return MountNetworkVolume(volume_, tools_, nullptr); }
  std::string Fault() { return Mount().message(); }

  const std::string mounts_ =
      "for target; do :; done\nexec mount -t tmpfs -o mode=755 export \"$target\"\n";
  NetworkVolume volume_;
  MountTools tools_;
};

TEST_F(NetworkMount, HappensOnce) {
  Program(mounts_);
  EXPECT_EQ(NotMounted({volume_})->size(), 1u);
  const Status status = Mount();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(NotMounted({volume_})->size(), 0u);
  EXPECT_EQ(Calls(), "-t nfs -o hard s:/export " + volume_.target + "\n");
  // As an agent does that comes after one which was killed.
  EXPECT_TRUE(Mount().ok());
  EXPECT_EQ(Mounts(), 1u);
  volume_.target += "-2";
  volume_.options.clear();
  EXPECT_TRUE(Mount().ok());
  EXPECT_TRUE(Calls().ends_with("\n-t nfs s:/export " + volume_.target + "\n")) << Calls();
}

TEST_F(NetworkMount, GivesTheProgramsOwnWords) {
  Program("echo 'mount.nfs: access denied by server' >&2; exit 32\n");
  const std::string fault = Fault();
  EXPECT_TRUE(
      fault.starts_with("MountVolume.SetUp failed for volume \"v\" : mount failed: exit status 32\n"
                        "Mounting command: mount\nMounting arguments: -t nfs -o hard s:/export " +
                        volume_.target + "\nOutput: mount.nfs: access denied by server"))
      << fault;
  const std::string missing = MissingForNfs(ProbeNfs());
  EXPECT_TRUE(fault.ends_with(missing)) << fault;
}

TEST_F(NetworkMount, WaitsForAServerOnlySoLong) {
  Program("exec sleep 1000\n");
  tools_.time_limit = milliseconds(300);
  const std::string fault = Fault();
  EXPECT_TRUE(fault.starts_with(
      "MountVolume.SetUp failed for volume \"v\" : nfs server s does not answer: "))
      << fault;
  const std::atomic<bool> cancelled = true;
  tools_.time_limit = kMountTimeLimit;
  EXPECT_EQ(MountNetworkVolume(volume_, tools_, &cancelled).reason(), Reason::kServiceUnavailable);
}

TEST_F(NetworkMount, BelievesTheKernelAndNotTheProgram) {
  Program("exit 0\n");
  EXPECT_NE(Fault().find("reports success, but nothing is mounted on " + volume_.target),
            std::string::npos);
}

TEST_F(NetworkMount, RefusesWhatItCannotDo) {
  Program(mounts_);
  tools_.refusal = "only root can";
  EXPECT_EQ(Fault(), "MountVolume.SetUp failed for volume \"v\" : only root can");
  tools_.refusal.clear();
  for (const char* option : {"bg", "hard,bg"}) {
    volume_.options = {option};
    EXPECT_NE(Fault().find("mount option bg is not supported"), std::string::npos);
  }
  volume_.options.clear();
  volume_.source = NfsVolume("-oexec", "/e", {}, false).source;
  EXPECT_NE(Fault().find("is no name of a server"), std::string::npos);
  EXPECT_EQ(Calls(), "");
}

}  // namespace
}  // namespace muster::agent
