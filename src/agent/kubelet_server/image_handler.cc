#include "agent/kubelet_server/image_handler.h"

#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {
namespace {

void Send(net::ResponseWriter& writer, int status, std::string body, std::string_view type) {
  net::Response response;
  response.status = status;
  response.headers.Set("Content-Type", std::string(type));
  response.body = std::move(body);
  writer.Send(std::move(response));
}

void SendError(net::ResponseWriter& writer, const Status& status) {
  Send(writer, status.code(), status.message() + "\n", "text/plain");
}

json::Value Describe(const ImageRecord& image, const ImageCache::Users& users) {
  const auto found = users.find(image.root);
  return json::Obj({{"id", image.id},
                    {"names", json::Strings(image.names)},
                    {"digests", json::Strings(image.digests)},
                    {"sizeBytes", image.size_bytes},
                    {"diskBytes", image.disk_bytes},
                    {"lastUsed", FormatTime(image.last_used)},
                    {"usedBy", json::Strings(found == users.end() ? std::vector<std::string>()
                                                                  : found->second)}});
}

}  // namespace

void ImageHandler::Answer(net::ResponseWriter& writer,
                          const Result<std::vector<ImageRecord>>& result) const {
  if (!result) return SendError(writer, result.error());
  const ImageCache::Users users = cache_.users();
  json::Array images;
  for (const ImageRecord& image : *result) images.push_back(Describe(image, users));
  Send(writer, 200, json::Write(json::Obj({{"images", std::move(images)}})), "application/json");
}

Status ImageHandler::Start(const std::string& what, const json::Value& request, Done done) {
  const std::string image = request["image"].Str();
  if (what == "pull") {
    Result<ImageReference> reference = ParseImageReference(image);
    if (!reference) return reference.error();
    cache_.Pull(*reference, {}, [done = std::move(done)](Result<PulledImage> pulled) mutable {
      if (!pulled) return done(std::unexpected(pulled.error()));
      done(std::vector<ImageRecord>{pulled->image});
    });
  } else if (what == "load") {
    const std::string path = request["path"].Str();
    if (!path.starts_with('/'))
      return Error(Reason::kBadRequest, "path {:?}: an absolute path is expected", path);
    cache_.Load(path, request["name"].Str(), std::move(done));
  } else if (what == "remove") {
    cache_.Remove(image, [done = std::move(done)](Status status) mutable {
      if (!status.ok()) return done(std::unexpected(status));
      done(std::vector<ImageRecord>());
    });
  } else {
    return Error(Reason::kNotFound, "/images/{} is not there: pull, load or remove", what);
  }
  return Status::Ok();
}

void ImageHandler::Handle(const net::Request& request, const std::string& what,
                          net::ResponseWriterPtr writer) {
  if (what.empty() && request.method == "GET") return Answer(*writer, cache_.images());
  if (what.empty() || request.method != "POST")
    return SendError(*writer, Error(Reason::kMethodNotAllowed, "images are changed with POST"));
  const std::string key = what + "\n" + request.body;
  const auto known = works_.find(key);
  if (known == works_.end()) {
    const Result<json::Value> body = json::Parse(request.body);
    if (!body) return SendError(*writer, body.error());
    if (works_.size() >= kMaxImageRequests)
      return SendError(*writer, Error(Reason::kTooManyRequests,
                                      "{} requests about images are "
                                      "under way",
                                      kMaxImageRequests));
    works_[key].waiting.push_back(writer);
    const Status started =
        Start(what, *body, lifetime_.Guard([this, key](Result<std::vector<ImageRecord>> result) {
          OnDone(key, std::move(result));
        }));
    if (!started.ok()) return OnDone(key, std::unexpected(started));
  } else if (known->second.result) {
    Answer(*writer, *known->second.result);
    works_.erase(known);
    return;
  } else {
    known->second.waiting.push_back(writer);
  }
  loop_.After(kImageAnswerTime, lifetime_.Guard([this, key, writer] {
    const auto work = works_.find(key);
    if (work == works_.end() || std::erase(work->second.waiting, writer) == 0) return;
    Send(*writer, 202, "{}", "application/json");
  }));
}

void ImageHandler::OnDone(const std::string& key, Result<std::vector<ImageRecord>> result) {
  const auto work = works_.find(key);
  if (work == works_.end()) return;
  const std::vector<net::ResponseWriterPtr> waiting = std::move(work->second.waiting);
  for (const net::ResponseWriterPtr& writer : waiting) Answer(*writer, result);
  if (!waiting.empty()) {
    works_.erase(work);
    return;
  }
  work->second.result = std::move(result);
  loop_.After(kImageResultTime, lifetime_.Guard([this, key] {
    const auto old = works_.find(key);
    if (old != works_.end() && old->second.result) works_.erase(old);
  }));
}

}  // namespace muster::agent
