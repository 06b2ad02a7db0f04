#include "training/env.h"

#include <gtest/gtest.h>

#include <map>

#include "training/test_jobs.h"

namespace muster::training {
namespace {

using Env = std::map<std::string, std::string>;

Env EnvFor(const json::Value& object, std::string_view type, int64_t index) {
  const Job job = Parsed(object);
  Env env;
  for (const auto& [name, value] : EnvOf(job, *job.Find(type), index))
    EXPECT_TRUE(env.emplace(name, value).second);
  return env;
}

TEST(Env, MasterAndWorkersFindEachOther) {
  const Env common{{"PYTHONUNBUFFERED", "1"},           {"MASTER_ADDR", "ddp-master-0"},
                   {"PET_MASTER_ADDR", "ddp-master-0"}, {"MASTER_PORT", "23456"},
                   {"PET_MASTER_PORT", "23456"},        {"WORLD_SIZE", "3"},
                   {"PET_NPROC_PER_NODE", "auto"},      {"PET_NNODES", "3"}};
  const struct {
    std::string_view type;
    int64_t index;
    const char* rank;
  } rows[] = {{"Master", 0, "0"}, {"Worker", 0, "1"}, {"Worker", 1, "2"}};
  for (const auto& row : rows) {
    Env expected = common;
    expected["RANK"] = expected["PET_NODE_RANK"] = row.rank;
    EXPECT_EQ(EnvFor(DdpJob(), row.type, row.index), expected) << row.type << row.index;
  }
}

TEST(Env, WorldSizeCountsProcesses) {
  const struct {
    const char* nproc;
    const char* world;
  } rows[] = {{"4", "12"}, {"auto", "3"}, {"gpu", "3"}, {"cpu", "3"}};
  for (const auto& row : rows) {
    const json::Value job = DdpJob().SetPath({"spec", "nprocPerNode"}, row.nproc);
    EXPECT_EQ(EnvFor(job, "Worker", 0)["WORLD_SIZE"], row.world) << row.nproc;
    EXPECT_EQ(EnvFor(job, "Worker", 0)["PET_NPROC_PER_NODE"], row.nproc);
  }
}

TEST(Env, MasterPortIsTheOneOfItsContainer) {
  json::Value job = DdpJob();
  job = job.SetPath({"spec", "pytorchReplicaSpecs", "Master", "template"}, Yaml(R"(
spec: {containers: [{name: sidecar, ports: [{name: pytorchjob-port, containerPort: 1}]},
                    {name: pytorch, ports: [{name: pytorchjob-port, containerPort: 29500}]}]})"));
  EXPECT_EQ(EnvFor(job, "Worker", 1)["MASTER_PORT"], "29500");
}

TEST(Env, WithoutMasterThereAreNoRanks) {
  json::Value job = DdpJob();
  job = job.SetPath({"spec", "pytorchReplicaSpecs"},
                    job["spec"]["pytorchReplicaSpecs"].Remove("Master"));
  EXPECT_EQ(EnvFor(job, "Worker", 0),
            (Env{{"PYTHONUNBUFFERED", "1"}, {"PET_NPROC_PER_NODE", "auto"}, {"PET_NNODES", "2"}}));
}

TEST(Env, TensorFlowIsToldOfItsCluster) {
  const json::Value job = TensorFlowJob("{Chief: 1, PS: 1, Worker: 2, Evaluator: 1}");
  const std::string cluster =
      R"({"cluster":{"chief":["tf-chief-0.d.svc:2222"],"ps":["tf-ps-0.d.svc:2222"],)"
      R"("worker":["tf-worker-0.d.svc:2222","tf-worker-1.d.svc:2222"]},"task":)";
  const struct {
    const char* type;
    int64_t index;
    const char* task;
  } rows[] = {{"Chief", 0, R"({"type":"chief","index":0})"},
              {"PS", 0, R"({"type":"ps","index":0})"},
              {"Worker", 1, R"({"type":"worker","index":1})"},
              {"Evaluator", 0, R"({"type":"evaluator","index":0})"}};
  for (const auto& row : rows) {
    EXPECT_EQ(EnvFor(job, row.type, row.index),
              (Env{{"TF_CONFIG", cluster + row.task + R"(,"environment":"cloud"})"}}))
        << row.type;
  }
  EXPECT_EQ(EnvFor(TensorFlowJob("{Worker: 1}"), "Worker", 0), Env());
}

TEST(Env, TensorFlowPortsAreThoseOfTheContainers) {
  json::Value job = TensorFlowJob("{Worker: 2}");
  job = job.SetPath({"spec", "tfReplicaSpecs", "Worker", "template"}, Yaml(R"(
spec: {containers: [{name: tensorflow, ports: [{name: tfjob-port, containerPort: 5000}]}]})"));
  EXPECT_NE(EnvFor(job, "Worker", 0)["TF_CONFIG"].find("tf-worker-1.d.svc:5000"),
            std::string::npos);
}

TEST(Env, DynamicWorkersAreToldOfThemselvesAndTheParameterServers) {
  const json::Value job = TensorFlowJob("{PS: 2, Worker: 2}", "{enableDynamicWorker: true}");
  EXPECT_EQ(
      EnvFor(job, "Worker", 1)["TF_CONFIG"],
      R"({"sparseCluster":{"worker":{"1":"tf-worker-1.d.svc:2222"},)"
      R"("ps":["tf-ps-0.d.svc:2222","tf-ps-1.d.svc:2222"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(EnvFor(job, "PS", 1)["TF_CONFIG"],
            R"({"sparseCluster":{"worker":{},"ps":["tf-ps-1.d.svc:2222"]},)"
            R"("task":{"type":"ps","index":1}})");
}

TEST(Env, JaxProcessesMeetAtWorkerZero) {
  const json::Value job = Yaml(R"(
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: jx, namespace: d, uid: u4, resourceVersion: "7"}
spec: {jaxReplicaSpecs: {Worker: {replicas: 3, template: {spec: {containers: [{name: jax}]}}}}})");
  EXPECT_EQ(EnvFor(job, "Worker", 2), (Env{{"PYTHONUNBUFFERED", "1"},
                                           {"COORDINATOR_ADDRESS", "jx-worker-0"},
                                           {"COORDINATOR_PORT", "6666"},
                                           {"NUM_PROCESSES", "3"},
                                           {"PROCESS_ID", "2"}}));
}

TEST(Env, ElasticJobsMeetAtWorkerZero) {
  EXPECT_EQ(EnvFor(ElasticJob(), "Worker", 2), (Env{{"PYTHONUNBUFFERED", "1"},
                                                    {"PET_NPROC_PER_NODE", "auto"},
                                                    {"PET_RDZV_ENDPOINT", "el-worker-0:23456"},
                                                    {"PET_RDZV_BACKEND", "c10d"},
                                                    {"PET_NNODES", "1:3"},
                                                    {"PET_MAX_RESTARTS", "10"}}));
}

TEST(Env, ElasticSettingsInFull) {
  const json::Value job = ElasticJob().SetPath({"spec", "elasticPolicy"}, Yaml(R"(
{rdzvBackend: etcd-v2, rdzvHost: etcd, rdzvPort: 2379, rdzvId: run1, standalone: true,
 nProcPerNode: 2, maxReplicas: 5,
 rdzvConf: [{key: timeout, value: "60"}, {key: last, value: x}]})"));
  const Env env = EnvFor(job, "Worker", 0);
  EXPECT_EQ(env.at("PET_RDZV_ENDPOINT"), "etcd:2379");
  EXPECT_EQ(env.at("PET_RDZV_BACKEND"), "etcd-v2");
  EXPECT_EQ(env.at("PET_RDZV_ID"), "run1");
  EXPECT_EQ(env.at("PET_RDZV_CONF"), "timeout=60,last=x");
  EXPECT_EQ(env.at("PET_STANDALONE"), "");
  EXPECT_EQ(env.at("PET_NPROC_PER_NODE"), "2");
  EXPECT_EQ(env.at("PET_NNODES"), "5:5");
  EXPECT_FALSE(env.contains("PET_MAX_RESTARTS"));
  EXPECT_FALSE(env.contains("RANK"));
}

TEST(Env, AReplacedRendezvousIsAtWorkerZero) {
  const json::Value job =
      ElasticJob()
          .SetPath({"spec", "elasticPolicy"},
                   Yaml("{rdzvBackend: etcd, rdzvHost: etcd-service, rdzvPort: 2379}"))
          .SetPath({"metadata", "annotations"},
                   json::Obj({{std::string(kRendezvousAnnotation), kC10d}}));
  const Env env = EnvFor(job, "Worker", 1);
  EXPECT_EQ(env.at("PET_RDZV_BACKEND"), "c10d");
  EXPECT_EQ(env.at("PET_RDZV_ENDPOINT"), "el-worker-0:23456");
}

TEST(Env, WhichServiceARendezvousNeeds) {
  const struct {
    const char* policy;
    const char* service;
  } rows[] = {{"{rdzvBackend: etcd, rdzvHost: etcd}", "d/etcd"},
              {"{rdzvBackend: etcd-v2, rdzvHost: etcd.infra.svc.cluster.local}", "infra/etcd"},
              {"{rdzvBackend: etcd, rdzvHost: etcd.infra.svc}", "infra/etcd"},
              {"{rdzvBackend: etcd, rdzvHost: etcd.example.com}", ""},
              {"{rdzvBackend: etcd, rdzvHost: 10.1.2.3}", ""},
              {"{rdzvBackend: etcd}", ""},
              {"{rdzvHost: etcd}", ""}};
  for (const auto& row : rows) {
    const Job job = Parsed(ElasticJob().SetPath({"spec", "elasticPolicy"}, Yaml(row.policy)));
    const auto service = job.elastic->ServiceFor("d");
    EXPECT_EQ(service ? service->first + "/" + service->second : "", row.service) << row.policy;
  }
}

TEST(Env, ElasticBoundsDefaultToEachOtherThenToTheWorkers) {
  const struct {
    const char* policy;
    const char* nnodes;
  } rows[] = {{"{}", "3:3"},
              {"{minReplicas: 2}", "2:2"},
              {"{maxReplicas: 4}", "4:4"},
              {"{minReplicas: 2, maxReplicas: 4}", "2:4"}};
  for (const auto& row : rows) {
    const json::Value job = ElasticJob().SetPath({"spec", "elasticPolicy"}, Yaml(row.policy));
    EXPECT_EQ(EnvFor(job, "Worker", 0)["PET_NNODES"], row.nnodes) << row.policy;
  }
}

}  // namespace
}  // namespace muster::training
