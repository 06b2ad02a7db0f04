#include "agent/node/driver_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using Part = DriverFile::Part;

class DriverFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/driver-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    dir_ = path;
    ASSERT_TRUE(MakeDirs(dir_ + "/lib64").ok() && MakeDirs(dir_ + "/bin").ok());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  // A library of the driver with the links that it has on a machine.
  void Library(const std::string& stem, const std::vector<std::string>& links,
               const std::string& version = "999.1.2") {
    const std::string file = stem + ".so." + version;
    ASSERT_TRUE(WriteFile(dir_ + "/lib64/" + file, "").ok());
    for (const std::string& link : links)
      ASSERT_EQ(symlink(file.c_str(), (dir_ + "/lib64/" + stem + ".so" + link).c_str()), 0);
  }
  std::vector<DriverFile> Find() const {
    return FindDriverFiles(dir_ + "/lib64/libnvidia-ml.so.999.1.2");
  }

  std::string dir_;
};

std::string Names(const std::vector<DriverFile>& files) {
  std::string out;
  for (const DriverFile& file : files)
    out += file.name + (file.program ? "!" : "") + fmt::format(":{} ", static_cast<int>(file.part));
  return out;
}

// Where each file is shown, below `dir`.
std::string ShownIn(const ContainerSpec& spec, const std::string& dir) {
  std::string out;
  for (const ContainerMount& mount : spec.mounts) {
    EXPECT_TRUE(mount.read_only && mount.resolved) << mount.target;
    if (mount.target.starts_with(dir + "/")) out += mount.target.substr(dir.size() + 1) + " ";
  }
  return out;
}

TEST_F(DriverFilesTest, AreThoseOfTheVersionOfTheLibraryByAllTheirNames) {
  Library("libnvidia-ml", {".1", ""});
  Library("libcuda", {".1"});
  Library("libnvidia-gpucomp", {});
  Library("libnvidia-nvvm", {".4"});
  Library("libnvcuvid", {".1"});
  Library("libnvidia-glcore", {});
  Library("libnvidia-container", {".1"}, "1.17.0");  // of another package
  Library("libcudart", {}, "12.4.99");
  ASSERT_TRUE(WriteFile(dir_ + "/lib64/nvidia.so.999.1.2", "").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/bin/nvidia-cuda-mps-server", "", 0755).ok());
  ASSERT_TRUE(WriteFile(dir_ + "/bin/other", "", 0755).ok());
  const std::vector<DriverFile> files = Find();
  std::string names = Names(files);
  // A machine that has these programs itself finds them, too.
  const size_t programs = names.find("nvidia-");
  EXPECT_EQ(names.substr(0, programs),
            "libcuda.so.1:1 libcuda.so.999.1.2:1 libnvcuvid.so.1:2 libnvcuvid.so.999.1.2:2 "
            "lib");
  EXPECT_NE(names.find("libnvidia-glcore.so.999.1.2:3 libnvidia-gpucomp.so.999.1.2:1 "
                       "libnvidia-ml.so:0 libnvidia-ml.so.1:0 libnvidia-ml.so.999.1.2:0 "
                       "libnvidia-nvvm.so.4:1 libnvidia-nvvm.so.999.1.2:1 "),
            std::string::npos)
      << names;
  EXPECT_EQ(names.find("container"), std::string::npos);
  EXPECT_EQ(names.find("cudart"), std::string::npos);
  EXPECT_EQ(names.find("other"), std::string::npos);
  EXPECT_EQ(files[0].source, dir_ + "/lib64/libcuda.so.999.1.2");
  EXPECT_EQ(files.back(), (DriverFile{"nvidia-cuda-mps-server",
                                      dir_ + "/bin/nvidia-cuda-mps-server", Part::kCompute, true}));
}

TEST_F(DriverFilesTest, ThereAreNoneBesideALibraryWithoutAVersion) {
  Library("libcuda", {".1"});
  EXPECT_TRUE(FindDriverFiles("").empty());
  EXPECT_TRUE(FindDriverFiles(dir_ + "/lib64/libfake-nvml.so").empty());
  EXPECT_TRUE(FindDriverFiles("libnvidia-ml.so.999.1.2").empty());
}

TEST_F(DriverFilesTest, AreBounded) {
  for (size_t i = 0; i <= kMaxDriverFiles; ++i) Library(fmt::format("libnvidia-{:03}", i), {});
  std::vector<DriverFile> files = Find();
  std::erase_if(files, [](const DriverFile& file) { return file.program; });
  EXPECT_EQ(files.size(), kMaxDriverFiles);
}

class AddDriverFilesTest : public testing::Test {
 protected:
  std::string Add(std::vector<std::string> environment) {
    spec_ = {};
    spec_.environment = std::move(environment);
    return AddDriverFiles(files_, spec_).message();
  }
  const std::vector<DriverFile> files_ = {
      {"libcuda.so", "/d/libcuda.so.9", Part::kCompute, false},
      {"libcuda.so.1", "/d/libcuda.so.9", Part::kCompute, false},
      {"libnvcuvid.so.1", "/d/libnvcuvid.so.9", Part::kVideo, false},
      {"libnvidia-glcore.so.9", "/d/libnvidia-glcore.so.9", Part::kGraphics, false},
      {"libnvidia-ml.so.1", "/d/libnvidia-ml.so.9", Part::kUtility, false},
      {"nvidia-smi", "/d/nvidia-smi", Part::kUtility, true},
  };
  ContainerSpec spec_;
};

TEST_F(AddDriverFilesTest, WithoutAWordTheyAreForUtilityAndCompute) {
  for (const char* said :
       {"", "NVIDIA_DRIVER_CAPABILITIES=", "NVIDIA_DRIVER_CAPABILITIES=utility, compute"}) {
    EXPECT_EQ(Add({"A=1", said}), "");
    EXPECT_EQ(ShownIn(spec_, std::string(kDriverLibraryDir)),
              "libcuda.so libcuda.so.1 libnvidia-ml.so.1 ");
    EXPECT_EQ(ShownIn(spec_, "/usr/lib"), "libcuda.so.1 libnvidia-ml.so.1 ");
    EXPECT_EQ(ShownIn(spec_, "/usr/lib64"), "libcuda.so.1 libnvidia-ml.so.1 ");
    EXPECT_EQ(ShownIn(spec_, "/usr/bin"), "nvidia-smi ");
  }
}

TEST_F(AddDriverFilesTest, CapabilitiesChoose) {
  const auto of = [&](const std::string& said) {
    EXPECT_EQ(Add({"NVIDIA_DRIVER_CAPABILITIES=" + said}), "");
    return ShownIn(spec_, std::string(kDriverLibraryDir)) + ShownIn(spec_, "/usr/bin");
  };
  EXPECT_EQ(of("utility"), "libnvidia-ml.so.1 nvidia-smi ");
  EXPECT_EQ(of("compute,video"), "libcuda.so libcuda.so.1 libnvcuvid.so.1 ");
  EXPECT_EQ(of("display"), "libnvidia-glcore.so.9 ");
  EXPECT_EQ(of("all"),
            "libcuda.so libcuda.so.1 libnvcuvid.so.1 libnvidia-glcore.so.9 libnvidia-ml.so.1 "
            "nvidia-smi ");
  const std::string refused = Add({"NVIDIA_DRIVER_CAPABILITIES=compute,cuda"});
  EXPECT_NE(refused.find("\"cuda\" is no capability"), std::string::npos) << refused;
}

TEST_F(AddDriverFilesTest, TheLinkerIsToldOnce) {
  const std::string dir(kDriverLibraryDir);
  EXPECT_EQ(Add({"A=1"}), "");
  EXPECT_EQ(spec_.environment, (std::vector<std::string>{"A=1", "LD_LIBRARY_PATH=" + dir}));
  EXPECT_EQ(Add({"LD_LIBRARY_PATH=/opt/lib"}), "");
  EXPECT_EQ(spec_.environment, std::vector<std::string>{"LD_LIBRARY_PATH=/opt/lib:" + dir});
  // As CUDA's own images have it.
  const std::vector<std::string> cuda = {"LD_LIBRARY_PATH=/usr/local/nvidia/lib:" + dir};
  EXPECT_EQ(Add(cuda), "");
  EXPECT_EQ(spec_.environment, cuda);
}

}  // namespace
}  // namespace muster::agent
