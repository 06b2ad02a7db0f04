// src/client/fake_api.h
//
// FakeApi: a small API server for tests of what stands above ApiClient: objects in a map, one
// counter of revisions, create/get/list/update/merge-patch/delete with finalizers (no graceful
// deletion of pods), watch from a revision. No schema, no admission, no authentication.
//
// Thread:     the loop thread of the test.

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/value.h"
#include "json/write.h"
#include "loop/loop.h"
#include "net/http.h"

namespace muster::client {

class FakeApi final : public net::Handler {
 public:
  explicit FakeApi(Loop& loop) : loop_(loop) {}

  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    requests.push_back(request.method + " " + request.target);
    if (before_handle && !before_handle(request, writer)) return;
    const size_t question = request.target.find('?');
    const std::string path = request.target.substr(0, question);
    const std::string query =
        question == std::string::npos ? "" : request.target.substr(question + 1);
    if (const auto found = static_answers.find(path); found != static_answers.end()) {
      return Send(*writer, 200, found->second);
    }
    const Route route = Parse(path);
    if (route.collection.empty()) return SendError(*writer, 404, "NotFound", path + " not found");
    if (request.method == "GET")
      return route.name.empty() ? List(route, query, writer) : Get(route, *writer);
    const json::Value body = BodyOf(request);
    if (request.method == "POST") return Create(route, body, *writer);
    if (request.method == "PUT") return Replace(route, body, *writer);
    if (request.method == "PATCH") return Patch(route, body, *writer);
    if (request.method == "DELETE") {
      return route.name.empty() ? DeleteCollection(route, *writer) : Delete(route, body, *writer);
    }
    SendError(*writer, 405, "MethodNotAllowed", request.method);
  }

  static json::Value BodyOf(const net::Request& request) {
    if (!request.value.IsNull()) return request.value;
    return json::Parse(request.body).value_or(json::Value());
  }

  // Straight into the store, as another client would.
  void Put(const std::string& collection, json::Value object) {
    const std::string key = KeyOf(collection, object);
    const json::Value* known =
        Find(collection, object["metadata"]["namespace"].Str(), object["metadata"]["name"].Str());
    if (!object["metadata"].Has("uid")) {
      object = object.SetPath({"metadata", "uid"},
                              known != nullptr ? (*known)["metadata"]["uid"]
                                               : json::Value("uid-" + std::to_string(++last_uid_)));
    }
    Commit(collection, key, known != nullptr ? "MODIFIED" : "ADDED", std::move(object));
  }

  void Remove(const std::string& collection, const std::string& ns, const std::string& name) {
    const std::string key = collection + "|" + ns + "/" + name;
    const auto found = objects.find(key);
    if (found != objects.end()) Commit(collection, key, "DELETED", found->second);
  }

  const json::Value* Find(const std::string& collection, const std::string& ns,
                          const std::string& name) const {
    const auto found = objects.find(collection + "|" + ns + "/" + name);
    return found == objects.end() ? nullptr : &found->second;
  }

  size_t Count(const std::string& collection) const {
    return static_cast<size_t>(std::count_if(
        objects.begin(), objects.end(),
        [&](const auto& entry) { return entry.first.starts_with(collection + "|"); }));
  }

  // Watches end; `expired` makes them end with 410 and forgets the history.
  void CutWatches(bool expired) {
    if (expired) {
      oldest_ = revision_;
      history_.clear();
    }
    for (Watcher& watcher : std::exchange(watchers_, {})) {
      if (expired)
        WriteFrame(*watcher.writer, "ERROR",
                   StatusBody(410, "Expired", "too old resource version"));
      watcher.writer->End();
    }
  }

  std::map<std::string, json::Value> objects;  // "/api/v1/pods|ns/name"
  std::map<std::string, json::Value> static_answers;
  std::vector<std::string> requests;  // "POST /api/v1/namespaces/d/pods?..."
  // Sees every request first; false: it answered itself.
  std::function<bool(const net::Request&, const net::ResponseWriterPtr&)> before_handle;
  uint64_t revision() const { return revision_; }

  static void SendError(net::ResponseWriter& writer, int code, const std::string& reason,
                        const std::string& message) {
    Send(writer, code, StatusBody(code, reason, message));
  }

 private:
  struct Route {
    std::string collection, ns, name,
        subresource;  // collection without its namespace: "/api/v1/pods"
  };
  struct Event {
    uint64_t revision;
    std::string collection, type;
    json::Value object;
  };
  struct Watcher {
    std::string collection;
    net::ResponseWriterPtr writer;
  };

  static Route Parse(const std::string& path) {
    const std::vector<std::string_view> parts = SplitNonEmpty(path, '/');
    size_t at = parts[0] == "api" ? 2 : 3;
    std::string root;
    for (size_t i = 0; i < at && i < parts.size(); ++i) root += "/" + std::string(parts[i]);
    Route route;
    const bool in_namespace = parts.size() > at + 2 && parts[at] == "namespaces" &&
                              parts[at + 2] != "finalize" && parts[at + 2] != "status";
    if (in_namespace) {
      route.ns = parts[at + 1];
      at += 2;
    }
    if (at < parts.size()) route.collection = root + "/" + std::string(parts[at]);
    if (at + 1 < parts.size()) route.name = parts[at + 1];
    if (at + 2 < parts.size()) route.subresource = parts[at + 2];
    return route;
  }

  static std::string KeyOf(const std::string& collection, const json::Value& object) {
    const json::Value& metadata = object["metadata"];
    return collection + "|" + metadata["namespace"].Str() + "/" + metadata["name"].Str();
  }
  static std::string KeyOf(const Route& route) {
    return route.collection + "|" + route.ns + "/" + route.name;
  }

  static json::Value StatusBody(int code, const std::string& reason, const std::string& message) {
    return json::Obj({{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"status", "Failure"},
                      {"message", message},
                      {"reason", reason},
                      {"code", code}});
  }

  static void Send(net::ResponseWriter& writer, int code, const json::Value& body) {
    net::Response response;
    response.status = code;
    response.body = json::Write(body);
    writer.Send(std::move(response));
  }

  static void WriteFrame(net::ResponseWriter& writer, const std::string& type,
                         const json::Value& object) {
    writer.Write(std::make_shared<const std::string>(
        json::Write(json::Obj({{"type", type}, {"object", object}})) + "\n"));
  }

  json::Value Commit(const std::string& collection, const std::string& key, const std::string& type,
                     json::Value object) {
    object = object.SetPath({"metadata", "resourceVersion"}, std::to_string(++revision_));
    if (type == "DELETED") {
      objects.erase(key);
    } else {
      objects[key] = object;
    }
    history_.push_back({revision_, collection, type, object});
    for (const Watcher& watcher : watchers_) {
      if (watcher.collection == collection) WriteFrame(*watcher.writer, type, object);
    }
    return object;
  }

  void List(const Route& route, const std::string& query, const net::ResponseWriterPtr& writer) {
    if (query.find("watch=true") != std::string::npos) return Watch(route, query, writer);
    json::Array items;
    for (const auto& [key, object] : objects) {
      if (!key.starts_with(route.collection + "|" + (route.ns.empty() ? "" : route.ns + "/")))
        continue;
      items.push_back(object.Remove("kind").Remove("apiVersion"));
    }
    Send(*writer, 200,
         json::Obj({{"kind", KindOf(route.collection) + "List"},
                    {"apiVersion", VersionOf(route.collection)},
                    {"metadata", json::Obj({{"resourceVersion", std::to_string(revision_)}})},
                    {"items", json::Value(std::move(items))}}));
  }

  void Watch(const Route& route, const std::string& query, const net::ResponseWriterPtr& writer) {
    uint64_t after = 0;
    for (const std::string_view part : Split(query, '&')) {
      if (part.starts_with("resourceVersion="))
        after = static_cast<uint64_t>(ParseInt(part.substr(16)).value_or(0));
    }
    if (after < oldest_) return SendError(*writer, 410, "Expired", "too old resource version");
    writer->StartStream(200, {});
    for (const Event& event : history_) {
      if (event.revision > after && event.collection == route.collection)
        WriteFrame(*writer, event.type, event.object);
    }
    watchers_.push_back({route.collection, writer});
    writer->OnPeerGone([this, raw = writer.get()] {
      std::erase_if(watchers_,
                    [raw](const Watcher& watcher) { return watcher.writer.get() == raw; });
    });
  }

  void Get(const Route& route, net::ResponseWriter& writer) {
    const auto found = objects.find(KeyOf(route));
    if (found == objects.end())
      return SendError(writer, 404, "NotFound", route.name + " not found");
    Send(writer, 200, found->second);
  }

  void Create(const Route& route, json::Value body, net::ResponseWriter& writer) {
    if (!route.ns.empty()) body = body.SetPath({"metadata", "namespace"}, route.ns);
    const std::string key = KeyOf(route.collection, body);
    if (objects.contains(key))
      return SendError(writer, 409, "AlreadyExists", key + " already exists");
    body = body.SetPath({"metadata", "uid"}, "uid-" + std::to_string(++last_uid_));
    body = body.SetPath({"metadata", "creationTimestamp"}, FormatTime(loop_.Now()));
    Send(writer, 201, Commit(route.collection, key, "ADDED", std::move(body)));
  }

  bool Stale(const json::Value& known, const json::Value& sent) const {
    const json::Value& version = sent["metadata"]["resourceVersion"];
    return version.IsString() && version != known["metadata"]["resourceVersion"];
  }

  void Replace(const Route& route, json::Value body, net::ResponseWriter& writer) {
    const auto found = objects.find(KeyOf(route));
    if (found == objects.end())
      return SendError(writer, 404, "NotFound", route.name + " not found");
    if (Stale(found->second, body))
      return SendError(writer, 409, "Conflict", "the object has been modified");
    if (route.subresource == "status") body = found->second.Set("status", body["status"]);
    Store(route, std::move(body), writer);
  }

  void Patch(const Route& route, const json::Value& patch, net::ResponseWriter& writer) {
    const auto found = objects.find(KeyOf(route));
    if (found == objects.end())
      return SendError(writer, 404, "NotFound", route.name + " not found");
    if (Stale(found->second, patch))
      return SendError(writer, 409, "Conflict", "the object has been modified");
    Store(route, json::ApplyMergePatch(found->second, patch), writer);
  }

  // A deleted object goes with its last finalizer; a namespace when it is finalized.
  void Store(const Route& route, json::Value body, net::ResponseWriter& writer) {
    const json::Value& metadata = body["metadata"];
    const bool gone = metadata.Has("deletionTimestamp") && metadata["finalizers"].empty() &&
                      body["spec"]["finalizers"].empty();
    Send(writer, 200,
         Commit(route.collection, KeyOf(route), gone ? "DELETED" : "MODIFIED", std::move(body)));
  }

  void Delete(const Route& route, const json::Value& options, net::ResponseWriter& writer) {
    const auto found = objects.find(KeyOf(route));
    if (found == objects.end())
      return SendError(writer, 404, "NotFound", route.name + " not found");
    json::Value object = found->second;
    const json::Value& uid = options["preconditions"]["uid"];
    if (uid.IsString() && uid != object["metadata"]["uid"])
      return SendError(writer, 409, "Conflict", "uid differs");
    const std::string_view policy = options["propagationPolicy"].AsString();
    json::Value finalizers = object["metadata"]["finalizers"];
    if (policy == "Foreground") finalizers = finalizers.Append("foregroundDeletion");
    if (policy == "Orphan") finalizers = finalizers.Append("orphan");
    if (finalizers.empty() && object["spec"]["finalizers"].empty()) {
      return Send(writer, 200,
                  Commit(route.collection, KeyOf(route), "DELETED", std::move(object)));
    }
    object = object.SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now()));
    if (!finalizers.empty()) object = object.SetPath({"metadata", "finalizers"}, finalizers);
    Send(writer, 200, Commit(route.collection, KeyOf(route), "MODIFIED", std::move(object)));
  }

  // Whatever their finalizers say.
  void DeleteCollection(const Route& route, net::ResponseWriter& writer) {
    const std::string prefix = route.collection + "|" + route.ns + "/";
    std::vector<std::string> names;
    for (auto it = objects.lower_bound(prefix);
         it != objects.end() && it->first.starts_with(prefix); ++it) {
      names.push_back(it->first.substr(prefix.size()));
    }
    for (const std::string& name : names) Remove(route.collection, route.ns, name);
    Send(writer, 200, json::Obj({{"kind", "Status"}, {"status", "Success"}}));
  }

  static std::string VersionOf(const std::string& collection) {
    const std::string_view path = collection;
    const std::string_view parent = path.substr(0, path.rfind('/'));
    return std::string(parent.starts_with("/apis/") ? parent.substr(6) : parent.substr(5));
  }
  static std::string KindOf(const std::string& collection) {
    static const std::map<std::string, std::string, std::less<>> kKinds = {
        {"pods", "Pod"},
        {"services", "Service"},
        {"nodes", "Node"},
        {"namespaces", "Namespace"},
        {"configmaps", "ConfigMap"},
        {"serviceaccounts", "ServiceAccount"},
        {"endpoints", "Endpoints"},
        {"endpointslices", "EndpointSlice"},
        {"pytorchjobs", "PyTorchJob"},
        {"replicasets", "ReplicaSet"},
        {"statefulsets", "StatefulSet"},
        {"daemonsets", "DaemonSet"},
        {"controllerrevisions", "ControllerRevision"},
        {"persistentvolumeclaims", "PersistentVolumeClaim"},
        {"deployments", "Deployment"},
        {"jobs", "Job"},
        {"cronjobs", "CronJob"},
        {"poddisruptionbudgets", "PodDisruptionBudget"},
        {"horizontalpodautoscalers", "HorizontalPodAutoscaler"},
        {"podgroups", "PodGroup"},
        {"leases", "Lease"},
        {"customresourcedefinitions", "CustomResourceDefinition"}};
    const auto found = kKinds.find(collection.substr(collection.rfind('/') + 1));
    return found == kKinds.end() ? "Thing" : found->second;
  }

  Loop& loop_;
  uint64_t revision_ = 0;
  uint64_t oldest_ = 0;
  uint64_t last_uid_ = 0;
  std::vector<Event> history_;
  std::vector<Watcher> watchers_;
};

}  // namespace muster::client
