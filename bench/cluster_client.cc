#include "cluster_client.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "json/write.h"

namespace muster::bench {

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  CHECK_MSG(file.good(), path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

json::Value Env(const std::string& name, const std::string& value) {
  return json::Obj({{"name", name}, {"value", value}});
}

json::Value Container(int index) {
  const json::Value amounts = json::Obj({{"cpu", "10m"}, {"memory", "16Mi"}});
  return json::Obj(
      {{"name", "pytorch"},
       {"image", "registry.example.com/ml-platform/trainer:2.4.1-cuda12.4-cudnn9-runtime"},
       {"command", json::List({"torchrun", "--nproc-per-node=1", "/workspace/train.py"})},
       {"args",
        json::List({"--config=/etc/train/config.yaml", "--epochs=90", "--amp", "--resume"})},
       {"ports", json::List({json::Obj({{"name", "pytorchjob-port"}, {"containerPort", 23456}})})},
       {"env",
        json::List({Env("MASTER_ADDR", "imagenet-resnet50-master-0"), Env("MASTER_PORT", "23456"),
                    Env("WORLD_SIZE", "64"), Env("RANK", std::to_string(index % 64)),
                    Env("PYTHONUNBUFFERED", "1"), Env("NCCL_DEBUG", "INFO"),
                    Env("WANDB_PROJECT", "imagenet"), Env("PET_NNODES", "64")})},
       {"resources", json::Obj({{"requests", amounts}, {"limits", amounts}})},
       {"volumeMounts",
        json::List({json::Obj({{"name", "data"}, {"mountPath", "/data"}, {"readOnly", true}}),
                    json::Obj({{"name", "config"}, {"mountPath", "/etc/train"}})})}});
}

}  // namespace

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double Percentile(std::vector<double> values, double share) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(static_cast<double>(values.size()) * share);
  return values[std::min(values.size() - 1, at)];
}

json::Value TrainingPod(int index, const std::string& node_kind) {
  const int job = index / 64;
  json::Value spec = json::Obj(
      {{"restartPolicy", "Never"},
       {"containers", json::List({Container(index)})},
       {"volumes", json::List({json::Obj({{"name", "data"},
                                          {"hostPath", json::Obj({{"path", "/srv/imagenet"}})}}),
                               json::Obj({{"name", "config"}, {"emptyDir", json::Obj()}})})}});
  if (!node_kind.empty()) spec = spec.Set("nodeSelector", json::Obj({{"bench/kind", node_kind}}));
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata",
        json::Obj({{"name", fmt::format("imagenet-resnet50-{:04}-worker-{:05}", job, index)},
                   {"labels",
                    json::Obj({{"training.kubeflow.org/job-name", fmt::format("imagenet-{}", job)},
                               {"training.kubeflow.org/operator-name", "pytorchjob-controller"},
                               {"training.kubeflow.org/replica-index", std::to_string(index % 64)},
                               {"training.kubeflow.org/replica-type", "worker"},
                               {"team", "vision"}})},
                   {"annotations", json::Obj({{"sidecar.istio.io/inject", "false"},
                                              {"example.com/experiment",
                                               fmt::format("{:08x}-lr0.1-batch256-seed{}",
                                                           index * 2654435761U, index)}})}})},
       {"spec", spec}});
}

net::Request MakeRequest(std::string method, std::string target, std::string body,
                         std::string content_type) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!body.empty()) request.headers.Add("Content-Type", content_type);
  request.body = std::move(body);
  return request;
}

ClusterClient::ClusterClient(const std::string& data_dir) {
  net::ClientOptions options;
  options.ca_pem = ReadFile(data_dir + "/pki/ca.crt");
  options.certificate_pem = ReadFile(data_dir + "/pki/admin.crt");
  options.key_pem = ReadFile(data_dir + "/pki/admin.key");
  auto made = net::HttpClient::Make(loop, io, std::move(options));
  CHECK(made.has_value());
  http = std::move(*made);
}

double ClusterClient::SendAll(int count, int in_flight,
                              const std::function<net::Request(int)>& request,
                              const std::function<void(int, const net::Response&)>& on_answer) {
  int next = 0, done = 0;
  std::function<void()> send = [&] {
    if (next >= count) return;
    const int index = next++;
    http->Send(endpoint, request(index), seconds(120), [&, index](Result<net::Response> answer) {
      CHECK_MSG(answer.has_value(), answer.has_value() ? "" : answer.error().message());
      on_answer(index, *answer);
      if (++done == count) return loop.Stop();
      send();
    });
  };
  const Duration start = RealClock().Monotonic();
  loop.Post([&] {
    for (int i = 0; i < in_flight; ++i) send();
  });
  loop.Run();
  loop.Restart();
  return Seconds(RealClock().Monotonic() - start);
}

double ClusterClient::CreateAll(const std::string& collection, int count,
                                const std::function<json::Value(int)>& object) {
  return SendAll(
      count, kClients,
      [&](int index) { return MakeRequest("POST", collection, json::Write(object(index))); },
      [](int, const net::Response& answer) { CHECK_MSG(answer.status == 201, answer.body); });
}

net::Response ClusterClient::Fetch(const std::string& target) {
  net::Response got;
  SendAll(
      1, 1, [&](int) { return MakeRequest("GET", target); },
      [&](int, const net::Response& answer) {
        got.status = answer.status;
        got.body = answer.body;
      });
  return got;
}

}  // namespace muster::bench
