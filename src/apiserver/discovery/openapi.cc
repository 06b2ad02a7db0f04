#include "apiserver/discovery/openapi.h"

#include "apiserver/discovery/subresources.h"
#include "apiserver/errors.h"
#include "base/strings.h"
#include "json/write.h"
#include "schema/openapi_v3.h"
#include "schema/wire.h"

namespace muster::apiserver {
namespace {

// What clients ask for and what they are told: "@" cannot stand in a Content-Type (RFC 6838 4.2).
constexpr std::string_view kAcceptedProtobuf =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
constexpr std::string_view kProtobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

void ReplyVersion2(Call& call, const std::string& version) {
  if (!call.request().headers.Get("Accept").contains(kAcceptedProtobuf)) {
    return call.Reply(200,
                      json::Obj({{"swagger", "2.0"},
                                 {"info", json::Obj({{"title", "muster"}, {"version", version}})},
                                 {"paths", json::Value(json::Object())}}));
  }
  // openapi.v2.Document of gnostic: swagger = 1, info = 2 (title = 1, version = 2), paths = 8.
  std::string info;
  schema::PutBytesField(info, 1, "muster");
  schema::PutBytesField(info, 2, version);
  net::Response response;
  response.headers.Add("Content-Type", std::string(kProtobuf));
  schema::PutBytesField(response.body, 1, "2.0");
  schema::PutBytesField(response.body, 2, info);
  schema::PutBytesField(response.body, 8, "");
  call.Send(std::move(response));
}

}  // namespace

OpenApi::OpenApi(Loop& loop, Pool* pool, const ResourceRegistry& registry, std::string version)
    : loop_(loop), pool_(pool), registry_(registry), version_(std::move(version)) {}

bool OpenApi::Handle(const CallPtr& call) {
  const std::vector<std::string>& parts = call->info().parts;
  if (parts.size() < 2 || parts[0] != "openapi" || (parts[1] != "v2" && parts[1] != "v3"))
    return false;
  if (call->info().method != "GET") {
    call->Fail(MethodNotAllowedError());
    return true;
  }
  if (parts[1] == "v2") {
    if (parts.size() == 2) {
      ReplyVersion2(*call, version_);
    } else {
      call->Fail(NoSuchResourceError());
    }
    return true;
  }
  Refresh([this, call] {
    const std::vector<std::string>& rest = call->info().parts;
    if (rest.size() == 2) return ReplyIndex(*call);
    ReplyDocument(*call, Join({rest.begin() + 2, rest.end()}, "/"));
  });
  return true;
}

OpenApi::DocumentPtr OpenApi::Render(const std::string& path,
                                     const std::vector<schema::KindPtr>& kinds) {
  std::vector<schema::OpenApiKind> described;
  for (const schema::KindPtr& kind : kinds) {
    // `status` and `scale` are described from the kind itself.
    described.push_back({kind, kind->scale != nullptr ? std::vector<schema::Subresource>()
                                                      : SubresourcesOf(*kind)});
  }
  auto document = std::make_shared<Document>();
  document->path = path;
  document->kinds = kinds;
  document->json = json::Write(schema::OpenApiV3(kinds[0]->group, kinds[0]->version, described));
  document->hash = fmt::format("{:016X}", Hash64(document->json));
  return document;
}

void OpenApi::Refresh(std::function<void()> then) {
  if (revision_ == registry_.revision()) return then();
  waiting_.push_back(std::move(then));
  if (rendering_) return;
  rendering_ = true;

  // What is to be described now; documents whose kinds are the same objects are kept.
  std::map<std::string, std::vector<schema::KindPtr>> wanted;
  for (const ResourcePtr& resource : registry_.All()) {
    wanted[schema::OpenApiPath(resource->kind->group, resource->kind->version)].push_back(
        resource->kind);
  }
  auto rendered = std::make_shared<Documents>();
  Task work = [rendered, wanted = std::move(wanted), old = documents_] {
    for (const auto& [path, kinds] : wanted) {
      const auto kept = old.find(path);
      const bool same = kept != old.end() && kept->second->kinds == kinds;
      (*rendered)[path] = same ? kept->second : Render(path, kinds);
    }
  };
  Task done = [this, rendered, revision = registry_.revision(), weak = std::weak_ptr<int>(alive_)] {
    if (!weak.lock()) return;
    documents_ = std::move(*rendered);
    revision_ = revision;
    rendering_ = false;
    for (std::function<void()>& one : std::exchange(waiting_, {})) Refresh(std::move(one));
  };
  if (pool_ != nullptr) return pool_->Run(std::move(work), loop_, std::move(done));
  work();
  done();
}

void OpenApi::ReplyIndex(Call& call) const {
  json::Object paths;
  for (const auto& [path, document] : documents_) {
    paths.emplace_back(path, json::Obj({{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}",
                                                                          path, document->hash)}}));
  }
  call.Reply(200, json::Obj({{"paths", json::Value(std::move(paths))}}));
}

void OpenApi::ReplyDocument(Call& call, const std::string& path) const {
  const auto found = documents_.find(path);
  if (found == documents_.end()) return call.Fail(NoSuchResourceError());
  const Document& document = *found->second;
  const std::string_view hash = call.info().query.Get("hash");
  net::Response response;
  if (!hash.empty() && hash != document.hash) {
    // The index was of another state: the client is sent to the present document.
    response.status = 301;
    response.headers.Add("Location", fmt::format("/openapi/v3/{}?hash={}", path, document.hash));
    return call.Send(std::move(response));
  }
  const std::string etag = fmt::format("\"{}\"", document.hash);
  response.headers.Add("Etag", etag);
  response.headers.Add("Vary", "Accept-Encoding, Accept");
  if (!hash.empty()) response.headers.Add("Cache-Control", "public, immutable");
  if (call.request().headers.Get("If-None-Match") == etag) {
    response.status = 304;
    return call.Send(std::move(response));
  }
  response.headers.Add("Content-Type", "application/json");
  response.body = document.json;
  call.Send(std::move(response));
}

}  // namespace muster::apiserver
