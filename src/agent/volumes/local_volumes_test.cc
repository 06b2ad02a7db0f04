#include "agent/volumes/local_volumes.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "agent/runtime/files.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

class LocalVolumes : public testing::Test {
 protected:
  LocalVolumes() {
    char path[] = "/tmp/agent-local-XXXXXX";
    dir_ = mkdtemp(path);
    root_ = LocalVolumesDir(dir_);
  }
  ~LocalVolumes() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string dir_, root_;
};

json::Value Volume() {
  return *json::Parse(
      R"({"metadata":{"name":"pvc-1","uid":"u","resourceVersion":"7","annotations":)"
      R"({"pv.kubernetes.io/provisioned-by":"muster.dev/local-path"},"finalizers":)"
      R"(["kubernetes.io/pv-protection","muster.dev/local-path"]},"spec":{"local":)"
      R"({"path":"/l/pvc-1_d_data"},"claimRef":{"namespace":"d","name":"data"},"nodeAffinity":)"
      R"({"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":)"
      R"("kubernetes.io/hostname","operator":"In","values":["n1"]}]}]}}}})");
}

TEST(LocalVolume, HasAFolderNamedAfterItAndItsClaim) {
  EXPECT_EQ(LocalVolumeFolder(Volume()), "pvc-1_d_data");
  EXPECT_EQ(VolumeOfLocalFolder("pvc-1_d_data"), "pvc-1");
  EXPECT_EQ(LocalVolumeFolder(Volume().RemovePath({"spec", "claimRef"})), "");
  EXPECT_EQ(LocalVolumeFolder(Volume().SetPath({"spec", "claimRef", "name"}, "../../etc")), "");
  for (const char* other : {"", "lost+found", "pvc-1_d", "a_b_c_d", ".removed-pvc-1_d_data"})
    EXPECT_EQ(VolumeOfLocalFolder(other), "") << other;
  const std::string longest(253, 'c');
  EXPECT_EQ(LocalVolumeFolder(Volume().SetPath({"spec", "claimRef", "name"}, longest)), "pvc-1");
  EXPECT_EQ(VolumeOfLocalFolder("pvc-1"), "pvc-1");
  EXPECT_TRUE(IsLocalPathVolume(Volume(), "/l/pvc-1_d_data"));
  EXPECT_FALSE(
      IsLocalPathVolume(Volume().RemovePath({"metadata", "annotations"}), "/l/pvc-1_d_data"));
}

TEST(LocalVolume, IsOfTheNodeThatItNamesAlone) {
  EXPECT_EQ(HostOfVolume(Volume()), "n1");
  EXPECT_EQ(HostOfVolume(Volume().RemovePath({"spec", "nodeAffinity"})), "");
  const json::Value two = *json::Parse(
      R"({"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname",)"
      R"("operator":"In","values":["n1","n2"]}]}]}})");
  EXPECT_EQ(HostOfVolume(Volume().SetPath({"spec", "nodeAffinity"}, two)), "");
}

TEST(LocalVolume, IsRemovedOnlyWhenNoClaimHoldsIt) {
  json::Value volume = Volume();
  EXPECT_FALSE(AwaitsRemoval(volume));
  volume = volume.SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
  EXPECT_FALSE(AwaitsRemoval(volume)) << "a claim is bound to it";
  volume = volume.SetPath({"metadata", "finalizers"},
                          json::Strings({"other/one", "muster.dev/local-path"}));
  EXPECT_TRUE(AwaitsRemoval(volume));
  EXPECT_EQ(WithoutFinalizer(volume),
            *json::Parse(R"({"metadata":{"uid":"u","resourceVersion":"7",)"
                         R"("finalizers":["other/one"]}})"));
  EXPECT_FALSE(
      AwaitsRemoval(volume.SetPath({"metadata", "finalizers"}, json::Strings({"other/one"}))));
}

TEST_F(LocalVolumes, AreMadeForEverybodyOnce) {
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  struct stat info = {};
  ASSERT_EQ(stat((root_ + "/pvc-1_d_data").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0777u);
  ASSERT_EQ(stat(root_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  // A pod has made it its own.
  ASSERT_EQ(chmod((root_ + "/pvc-1_d_data").c_str(), 0700), 0);
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  ASSERT_EQ(stat((root_ + "/pvc-1_d_data").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_FALSE(MakeLocalVolume(root_, "../x").ok());
  EXPECT_FALSE(RemoveLocalVolume(root_, "..").ok());
  EXPECT_FALSE(RemoveLocalVolume(root_, "").ok());
  EXPECT_EQ(ListDir(root_), std::vector<std::string>{"pvc-1_d_data"});
}

TEST_F(LocalVolumes, AreMadeForTheirFirstPodOnly) {
  const std::string folder = root_ + "/pvc-1_d_data";
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  ASSERT_TRUE(WriteFile(folder + "/file", "precious").ok());
  ASSERT_EQ(rename(folder.c_str(), (dir_ + "/away").c_str()), 0);
  const Status gone = MakeLocalVolume(root_, "pvc-1_d_data");
  EXPECT_EQ(gone.reason(), Reason::kNotFound);
  EXPECT_EQ(gone.message(),
            folder +
                " is gone with what was in it: it was made for the first pod of its claim, and "
                "is not made again. Put it back, or begin with an empty one: mkdir -m 777 \"" +
                folder + "\"");
  EXPECT_FALSE(PathExists(folder));
  ASSERT_EQ(rename((dir_ + "/away").c_str(), folder.c_str()), 0);
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  EXPECT_EQ(ReadSmallFile(folder + "/file").value_or(""), "precious");
  // Their disk is not there.
  ASSERT_EQ(rename(root_.c_str(), (dir_ + "/disk").c_str()), 0);
  EXPECT_EQ(MakeLocalVolume(root_, "pvc-1_d_data").reason(), Reason::kNotFound);
  EXPECT_FALSE(PathExists(root_));
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-2_d_data").ok()) << "another one is made";
  // What is removed leaves nothing that would speak of it.
  ASSERT_TRUE(RemoveLocalVolume(root_, "pvc-1_d_data").ok());
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  EXPECT_TRUE(PathExists(folder));
}

// One of a version that did not take note of it, or that a crash kept from doing so.
TEST_F(LocalVolumes, OnesThatAreThereAreNotedWhenTheyAreMounted) {
  ASSERT_TRUE(MakeDirs(root_ + "/pvc-1_d_data").ok());
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  ASSERT_TRUE(RemoveTree(root_ + "/pvc-1_d_data").ok());
  EXPECT_EQ(MakeLocalVolume(root_, "pvc-1_d_data").reason(), Reason::kNotFound);
}

TEST_F(LocalVolumes, AreRemovedWithoutFollowingLinks) {
  ASSERT_TRUE(MakeDirs(dir_ + "/victim").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/victim/file", "precious").ok());
  const std::string volume = root_ + "/pvc-1_d_data";
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  ASSERT_TRUE(MakeDirs(volume + "/sub/deep").ok());
  ASSERT_EQ(symlink((dir_ + "/victim").c_str(), (volume + "/link").c_str()), 0);
  ASSERT_EQ(symlink((dir_ + "/victim").c_str(), (volume + "/sub/deep/link").c_str()), 0);
  ASSERT_EQ(symlink("/", (volume + "/sub/root").c_str()), 0);
  ASSERT_EQ(symlink((dir_ + "/victim").c_str(), (root_ + "/pvc-2_d_data").c_str()), 0);
  EXPECT_TRUE(RemoveLocalVolume(root_, "pvc-1_d_data").ok());
  EXPECT_TRUE(RemoveLocalVolume(root_, "pvc-2_d_data").ok()) << "a link in place of the folder";
  EXPECT_TRUE(RemoveLocalVolume(root_, "pvc-1_d_data").ok()) << "again";
  EXPECT_TRUE(ListDir(root_).empty());
  EXPECT_EQ(ReadSmallFile(dir_ + "/victim/file").value_or(""), "precious");
}

TEST_F(LocalVolumes, MayHaveTheLongestNames) {
  const std::string folder = "pvc-1_d_" + std::string(NAME_MAX - 8, 'c');
  ASSERT_TRUE(MakeLocalVolume(root_, folder).ok());
  ASSERT_TRUE(RetainLocalVolume(root_, folder, true).ok());
  EXPECT_TRUE(RemoveLocalVolume(root_, folder).ok());
  EXPECT_TRUE(ListDir(root_).empty());
}

TEST_F(LocalVolumes, WhatARemovalHasLeftIsSwept) {
  ASSERT_TRUE(MakeDirs(root_ + "/.removed-pvc-1_d_data/half").ok());
  ASSERT_TRUE(MakeDirs(root_ + "/.new-pvc-2_d_data").ok());
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-3_d_data").ok());
  ASSERT_TRUE(MakeDirs(root_ + "/lost+found").ok());
  SweepLocalVolumes(root_);
  EXPECT_EQ(ListDir(root_), (std::vector<std::string>{"lost+found", "pvc-3_d_data"}));
  EXPECT_EQ(LocalVolumeFolders(root_), std::vector<std::string>{"pvc-3_d_data"});
}

TEST_F(LocalVolumes, RetainedOnesAreNobodysToRemove) {
  ASSERT_TRUE(RetainLocalVolume(root_, "pvc-0_d_data", true).ok()) << "there is none";
  ASSERT_TRUE(MakeLocalVolume(root_, "pvc-1_d_data").ok());
  ASSERT_TRUE(RetainLocalVolume(root_, "pvc-1_d_data", true).ok());
  EXPECT_TRUE(LocalVolumeFolders(root_).empty());
  SweepLocalVolumes(root_);
  EXPECT_TRUE(PathExists(root_ + "/pvc-1_d_data"));
  ASSERT_TRUE(RetainLocalVolume(root_, "pvc-1_d_data", false).ok());
  EXPECT_EQ(LocalVolumeFolders(root_).size(), 1u);
  ASSERT_TRUE(RetainLocalVolume(root_, "pvc-1_d_data", true).ok());
  EXPECT_TRUE(RemoveLocalVolume(root_, "pvc-1_d_data").ok());
  EXPECT_TRUE(ListDir(root_).empty()) << "the mark goes with it";
}

}  // namespace
}  // namespace muster::agent
