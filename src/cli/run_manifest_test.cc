#include "cli/run_manifest.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/host_mounts.h"

namespace muster::cli {
namespace {

RunSpec Spec() {
  RunSpec spec;
  spec.name = "train";
  spec.ns = "default";
  spec.image = "host";
  spec.command = {"python", "train.py"};
  spec.directory = "/home/me/project";
  spec.environment = {{"PATH", "/usr/bin"}};
  spec.mounts = {{"/home/me/project", false}, {"/home/me/venv", true}};
  return spec;
}

TEST(MakeRunJob, MakesOneMasterAndTheOtherWorkers) {
  RunSpec spec = Spec();
  spec.workers = 4;
  spec.gpus = 2;
  spec.cpus = "3";
  spec.memory = "8Gi";
  const json::Value job = MakeRunJob(spec);
  const json::Value& replicas = job["spec"]["pytorchReplicaSpecs"];
  EXPECT_EQ(replicas["Master"]["replicas"].AsInt(), 1);
  EXPECT_EQ(replicas["Worker"]["replicas"].AsInt(), 3);
  EXPECT_EQ(replicas["Worker"]["restartPolicy"].AsString(), "Never");
  const json::Value& container = replicas["Worker"]["template"]["spec"]["containers"].At(0);
  EXPECT_EQ(container["name"].AsString(), "pytorch");
  EXPECT_EQ(container["workingDir"].AsString(), "/home/me/project");
  EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"].AsString(), "2");
  EXPECT_EQ(container["resources"]["limits"]["memory"].AsString(), "8Gi");
  EXPECT_FALSE(container["resources"]["limits"].Has("cpu")) << "CPUs are shared when they are free";
  EXPECT_EQ(container["resources"]["requests"]["cpu"].AsString(), "3");
  EXPECT_EQ(container["volumeMounts"].At(0)["mountPath"].AsString(), "/home/me/project");
  EXPECT_FALSE(container["volumeMounts"].At(0).Has("readOnly"));
  EXPECT_TRUE(container["volumeMounts"].At(1)["readOnly"].AsBool());
  EXPECT_EQ(replicas["Master"]["template"]["spec"]["volumes"].At(1)["hostPath"]["path"].AsString(),
            "/home/me/venv");
}

TEST(MakeRunJob, MakesNoWorkersForOneProcess) {
  const json::Value job = MakeRunJob(Spec());
  EXPECT_FALSE(job["spec"]["pytorchReplicaSpecs"].Has("Worker"));
  EXPECT_FALSE(
      job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].At(0).Has(
          "resources"));
}

TEST(RunName, ComesFromTheScript) {
  Rng rng(1);
  auto base = [&rng](const std::vector<std::string>& command) {
    std::string name = RunName(command, rng);
    EXPECT_TRUE(CheckRunName(name).ok()) << name;
    return name.substr(0, name.size() - 6);
  };
  EXPECT_EQ(base({"python", "examples/train_digits.py"}), "train-digits");
  EXPECT_EQ(base({"python", "-u", "train.py", "--lr", "1"}), "train");
  EXPECT_EQ(base({"./Sweep.sh", "3"}), "sweep");
  EXPECT_EQ(base({"sleep", "60"}), "sleep");
  EXPECT_EQ(base({"/opt/9lives"}), "lives");
  EXPECT_EQ(base({"___"}), "run");
  EXPECT_FALSE(CheckRunName("Train").ok());
  EXPECT_FALSE(CheckRunName(std::string(60, 'a')).ok());
}

// A machine made of a few paths.
FileFacts Machine(const std::set<std::string>& directories,
                  const std::map<std::string, std::string>& programs,
                  const std::map<std::string, std::string>& files) {
  FileFacts facts;
  facts.is_directory = [=](const std::string& path) { return directories.contains(path); };
  facts.is_program = [=](const std::string& path) { return programs.contains(path); };
  facts.real_path = [=](const std::string& path) -> std::optional<std::string> {
    const auto found = programs.find(path);
    if (found == programs.end()) return std::nullopt;
    return found->second.empty() ? path : found->second;
  };
  facts.read_file = [=](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
  return facts;
}

TEST(PlanMounts, MountsTheDirectoryAndWhatThePodCannotSee) {
  FileFacts files =
      Machine({"/home/me/venv", "/root/python"},
              {{"/home/me/venv/bin/python", "/root/python/bin/python3.11"}},
              {{"/home/me/venv/pyvenv.cfg", "include = x\nhome = /root/python/bin\n"}});
  Environment environment = {{"PATH", "/home/me/venv/bin:/usr/bin"},
                             {"VIRTUAL_ENV", "/home/me/venv"}};
  EXPECT_EQ(PlanMounts("/home/me/project", environment, {"python", "x.py"}, files),
            (std::vector<HostMount>{
                {"/home/me/project", false}, {"/home/me/venv", true}, {"/root/python", true}}));
}

TEST(PlanMounts, MountsNothingTwiceAndNothingThatThePodSees) {
  FileFacts files = Machine({"/home/me/project/venv", "/usr", "/opt/conda"},
                            {{"/home/me/project/venv/bin/python", "/usr/bin/python3.11"}}, {});
  Environment environment = {{"PATH", "/home/me/project/venv/bin"},
                             {"VIRTUAL_ENV", "/home/me/project/venv"},
                             {"CONDA_PREFIX", "/opt/conda"}};
  EXPECT_EQ(PlanMounts("/home/me/project", environment, {"python"}, files),
            (std::vector<HostMount>{{"/home/me/project", false}}));
  EXPECT_TRUE(PlanMounts("/", {}, {"true"}, files).empty());
}

TEST(PlanMounts, FindsInterpretersInHomes) {
  FileFacts files =
      Machine({"/home/me/.local", "/home/me/.pyenv/versions/3.12"},
              {{"/home/me/.local/bin/tool", "/home/me/.pyenv/versions/3.12/bin/tool"}}, {});
  EXPECT_EQ(
      PlanMounts("/srv", {{"PATH", "/home/me/.local/bin"}}, {"tool"}, files),
      (std::vector<HostMount>{
          {"/home/me/.local", true}, {"/home/me/.pyenv/versions/3.12", true}, {"/srv", false}}));
}

TEST(PlanMounts, TakesAllOfPyenvForAShim) {
  FileFacts files = Machine({"/home/me/.pyenv"}, {{"/home/me/.pyenv/shims/python3", ""}}, {});
  EXPECT_EQ(PlanMounts("/srv", {{"PATH", "/home/me/.pyenv/shims"}}, {"python3"}, files),
            (std::vector<HostMount>{{"/home/me/.pyenv", true}, {"/srv", false}}));
}

TEST(TakenEnvironment, TakesOnlyWhatThePodNeeds) {
  std::map<std::string, const char*> here = {
      {"PATH", "/bin"}, {"HOME", "/root"}, {"VIRTUAL_ENV", ""}};
  Environment taken = TakenEnvironment(
      [&](const char* name) { return here.contains(name) ? here[name] : nullptr; });
  EXPECT_EQ(taken, (Environment{{"PATH", "/bin"}}));
}

}  // namespace
}  // namespace muster::cli
