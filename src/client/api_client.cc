#include "client/api_client.h"

#include <utility>

#include "base/strings.h"
#include "client/watch_decoder.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::client {
namespace {

constexpr std::string_view kJsonType = "application/json";

// Query parameters after a path: "?a=b&c=d".
class Query {
 public:
  explicit Query(std::string path) : text_(std::move(path)) {}
  void Add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    text_ += first_ ? '?' : '&';
    first_ = false;
    text_ += name;
    text_ += '=';
    text_ += PercentEncode(value);
  }
  void Add(std::string_view name, int64_t value) {
    if (value > 0) Add(name, std::to_string(value));
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  bool first_ = true;
};

std::string_view ContentTypeOf(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return kJsonType;
}

json::Value BodyOf(const DeleteOptions& options) {
  json::Value body = json::Obj({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  if (!options.propagation_policy.empty())
    body = body.Set("propagationPolicy", options.propagation_policy);
  if (options.grace_period_seconds)
    body = body.Set("gracePeriodSeconds", *options.grace_period_seconds);
  json::Value preconditions;
  if (!options.precondition_uid.empty())
    preconditions = preconditions.Set("uid", options.precondition_uid);
  if (!options.precondition_resource_version.empty()) {
    preconditions = preconditions.Set("resourceVersion", options.precondition_resource_version);
  }
  return preconditions.IsNull() ? body : body.Set("preconditions", std::move(preconditions));
}

Status StatusFromJson(const json::Value& value, int http_code) {
  StatusDetails details;
  const json::Value& from = value["details"];
  details.name = from["name"].Str();
  details.group = from["group"].Str();
  details.kind = from["kind"].Str();
  details.uid = from["uid"].Str();
  details.retry_after_seconds = static_cast<int>(from["retryAfterSeconds"].AsInt());
  for (const json::Value& cause : from["causes"].items()) {
    details.causes.push_back({cause["reason"].Str(), cause["field"].Str(), cause["message"].Str()});
  }
  const int code = static_cast<int>(value["code"].AsInt(http_code));
  return Status(ReasonFromName(value["reason"].AsString(), code), value["message"].Str(),
                std::move(details));
}

Result<json::Value> Decode(const net::Response& response) {
  if (Status status = ApiClient::StatusOf(response); !status.ok()) return Error(std::move(status));
  if (!response.value.IsNull()) return response.value;
  if (response.body.empty()) return json::Value();
  return json::Parse(response.body, nullptr, json::kMaxAnswerDepth);
}

// A watch in flight: decodes what arrives and hands it on. Shared by the transport's callbacks and
// the caller's handle, either of which may go first, also from inside a callback.
struct WatchState {
  WatchCallbacks callbacks;
  WatchDecoder decoder;
  int http_status = 200;
  std::string error_body;
  bool closed = false;

  void End(Status status) {
    if (closed) return;
    closed = true;
    callbacks.on_end(std::move(status));
  }

  void OnData(std::string_view bytes) {
    if (closed) return;
    if (http_status != 200) {
      if (error_body.size() + bytes.size() <= kMaxWatchFrameBytes) error_body += bytes;
      return;
    }
    decoder.Feed(bytes);
    while (!closed) {
      Result<std::optional<WatchFrame>> frame = decoder.Next();
      if (!frame) return End(frame.error());
      if (!frame->has_value()) return;
      OnFrame((*frame)->type, std::move((*frame)->object));
    }
  }

  void OnValue(const json::Value& frame) {
    if (!closed) OnFrame(frame["type"].AsString(), frame["object"]);
  }

  void OnFrame(std::string_view type, json::Value object) {
    if (type == "ERROR") return End(StatusFromJson(object, 500));
    callbacks.on_event(type, std::move(object));
  }

  void OnEnd(Status status) {
    if (status.ok() && http_status != 200) {
      net::Response response;
      response.status = http_status;
      response.body = std::move(error_body);
      status = ApiClient::StatusOf(response);
    }
    End(std::move(status));
  }
};

class WatchHandle final : public StreamHandle {
 public:
  WatchHandle(std::shared_ptr<WatchState> state, std::unique_ptr<StreamHandle> stream)
      : state_(std::move(state)), stream_(std::move(stream)) {}
  ~WatchHandle() override { state_->closed = true; }

 private:
  std::shared_ptr<WatchState> state_;
  std::unique_ptr<StreamHandle> stream_;
};

}  // namespace

ApiClient::ApiClient(Loop& loop, Transport& transport, std::string user_agent)
    : loop_(loop), transport_(transport), user_agent_(std::move(user_agent)) {}

std::string ApiClient::PathOf(const Target& target) {
  std::string path =
      target.resource.group.empty() ? "/api/" : "/apis/" + target.resource.group + "/";
  path += target.resource.version;
  if (!target.ns.empty()) path += "/namespaces/" + PercentEncode(target.ns);
  path += "/" + target.resource.plural;
  if (!target.name.empty()) path += "/" + PercentEncode(target.name);
  if (!target.subresource.empty()) path += "/" + target.subresource;
  return path;
}

Status ApiClient::StatusOf(const net::Response& response) {
  if (response.status >= 200 && response.status < 300) return Status::Ok();
  if (const Result<json::Value> body = json::Parse(response.body);
      body && (*body)["kind"].AsString() == "Status") {
    return StatusFromJson(*body, response.status);
  }
  constexpr size_t kShown = 200;
  return Status(
      ReasonFromName("", response.status),
      fmt::format("the server answered {}: {}", response.status, response.body.substr(0, kShown)));
}

void ApiClient::Call(std::string method, std::string target, std::string_view content_type,
                     json::Value body, Done done) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.Add("Accept", std::string(kJsonType));
  request.takes_values = transport_.CarriesValues();
  if (!body.IsNull()) {
    request.headers.Add("Content-Type", std::string(content_type));
    if (request.takes_values) {
      request.value = std::move(body);
    } else {
      request.body = json::Write(body);
    }
  }
  Raw(std::move(request), [done = std::move(done)](Result<net::Response> response) mutable {
    done(response ? Decode(*response)
                  : Result<json::Value>(std::unexpected(std::move(response.error()))));
  });
}

void ApiClient::Raw(net::Request request, Function<void(Result<net::Response>)> done) {
  if (!request.headers.Has("User-Agent")) request.headers.Add("User-Agent", user_agent_);
  transport_.Send(std::move(request), lifetime_.Guard(std::move(done)));
}

std::unique_ptr<StreamHandle> ApiClient::RawStream(net::Request request,
                                                   StreamCallbacks callbacks) {
  if (!request.headers.Has("User-Agent")) request.headers.Add("User-Agent", user_agent_);
  if (!callbacks.on_head) callbacks.on_head = [](int, const net::Headers&) {};
  if (!callbacks.on_data) callbacks.on_data = [](std::string_view) {};
  if (!callbacks.on_value) callbacks.on_value = [](const json::Value&) {};
  return transport_.Stream(std::move(request),
                           {.on_head = lifetime_.Guard(std::move(callbacks.on_head)),
                            .on_data = lifetime_.Guard(std::move(callbacks.on_data)),
                            .on_value = lifetime_.Guard(std::move(callbacks.on_value)),
                            .on_end = lifetime_.Guard(std::move(callbacks.on_end))});
}

void ApiClient::Get(const Target& target, Done done) { GetPath(PathOf(target), std::move(done)); }

void ApiClient::GetPath(std::string path, Done done) {
  Call("GET", std::move(path), kJsonType, json::Value(), std::move(done));
}

void ApiClient::List(const Resource& resource, std::string_view ns, const ListOptions& options,
                     Done done) {
  Query query(PathOf({resource, std::string(ns), "", ""}));
  query.Add("labelSelector", options.label_selector);
  query.Add("fieldSelector", options.field_selector);
  query.Add("limit", options.limit);
  query.Add("continue", options.continue_token);
  query.Add("resourceVersion", options.resource_version);
  Call("GET", query.Take(), kJsonType, json::Value(), std::move(done));
}

void ApiClient::Create(const Target& target, const json::Value& object, Done done) {
  // A create goes to the collection; only a subresource (pods/x/binding) keeps the name in the
  // path.
  Target where = target;
  if (where.subresource.empty()) where.name.clear();
  Query query(PathOf(where));
  query.Add("fieldManager", user_agent_);
  Call("POST", query.Take(), kJsonType, object, std::move(done));
}

void ApiClient::Update(const Target& target, const json::Value& object, Done done) {
  Query query(PathOf(target));
  query.Add("fieldManager", user_agent_);
  Call("PUT", query.Take(), kJsonType, object, std::move(done));
}

void ApiClient::Patch(const Target& target, PatchType type, const json::Value& patch, Done done) {
  Query query(PathOf(target));
  query.Add("fieldManager", user_agent_);
  if (type == PatchType::kApply) query.Add("force", "true");
  Call("PATCH", query.Take(), ContentTypeOf(type), patch, std::move(done));
}

void ApiClient::Delete(const Target& target, const DeleteOptions& options, Done done) {
  Call("DELETE", PathOf(target), kJsonType, BodyOf(options), std::move(done));
}

std::unique_ptr<StreamHandle> ApiClient::Watch(const Resource& resource, std::string_view ns,
                                               const WatchOptions& options,
                                               WatchCallbacks callbacks) {
  Query query(PathOf({resource, std::string(ns), "", ""}));
  query.Add("watch", "true");
  query.Add("labelSelector", options.label_selector);
  query.Add("fieldSelector", options.field_selector);
  query.Add("resourceVersion", options.resource_version);
  if (options.allow_bookmarks) query.Add("allowWatchBookmarks", "true");
  query.Add("timeoutSeconds", options.timeout_seconds);

  net::Request request;
  request.method = "GET";
  request.target = query.Take();
  request.headers.Add("Accept", std::string(kJsonType));
  request.takes_values = transport_.CarriesValues();

  auto state = std::make_shared<WatchState>();
  state->callbacks = std::move(callbacks);
  auto stream = RawStream(
      std::move(request),
      {.on_head = [state](int status, const net::Headers&) { state->http_status = status; },
       .on_data = [state](std::string_view bytes) { state->OnData(bytes); },
       .on_value = [state](const json::Value& frame) { state->OnValue(frame); },
       .on_end = [state](Status status) { state->OnEnd(std::move(status)); }});
  return std::make_unique<WatchHandle>(std::move(state), std::move(stream));
}

}  // namespace muster::client
