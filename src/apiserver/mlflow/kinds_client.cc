#include "apiserver/mlflow/kinds_client.h"

#include <utility>

#include "base/strings.h"
#include "json/parse.h"

namespace muster::apiserver {
namespace {

constexpr Duration kRetryInterval = milliseconds(5);
constexpr size_t kPieceBytes = 256 * 1024;

Status TooLarge() {
  return Error(Reason::kInvalid, "there is too much to look through: search by name");
}

Result<json::Value> ValueOf(net::Response response, size_t* bytes) {
  if (response.source != nullptr) {
    while (response.source->Next(kPieceBytes, response.body))
      if (response.body.size() > kMaxRegistryPageBytes) return Error(TooLarge());
  }
  if (bytes != nullptr) *bytes = response.body.size();
  json::Value value = std::move(response.value);
  if (value.IsNull() && !response.body.empty()) {
    ASSIGN_OR_RETURN(value, json::Parse(response.body));
  }
  if (response.status < 300) return value;
  return Error(Status(ReasonFromName(value["reason"].AsString(), response.status),
                      value["message"].Str(fmt::format("HTTP {}", response.status))));
}

// Takes one whole answer.
class AnswerTaker final : public net::ResponseWriter {
 public:
  AnswerTaker(KindsClient::Done done, std::shared_ptr<size_t> bytes)
      : done_(std::move(done)), bytes_(std::move(bytes)) {}
  ~AnswerTaker() override {
    if (done_) done_(Error(Reason::kInternalError, "the request was not answered"));
  }

  void Send(net::Response response) override {
    if (done_) std::exchange(done_, nullptr)(ValueOf(std::move(response), bytes_.get()));
  }
  // Nothing that is asked here is a stream.
  void StartStream(int, net::Headers) override {}
  void Write(std::shared_ptr<const std::string>) override {}
  void End() override {}
  size_t BufferedBytes() const override { return 0; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override { return nullptr; }
  void OnPeerGone(Task) override {}
  bool TakesValues() const override { return true; }

 private:
  KindsClient::Done done_;
  const std::shared_ptr<size_t> bytes_;
};

std::string Selecting(const std::string& field_selector) {
  if (field_selector.empty()) return "";
  return "&fieldSelector=" + PercentEncode(field_selector);
}

}  // namespace

std::string KindsClient::NewRunId() { return ReplaceAll(core_.rng.Uuid(), "-", ""); }

std::string KindsClient::PathOf(std::string_view plural, std::string_view name) const {
  std::string path =
      fmt::format("/apis/{}/namespaces/{}/{}", kRegistryGroupVersion, PercentEncode(ns_), plural);
  if (!name.empty()) path += "/" + PercentEncode(name);
  return path;
}

void KindsClient::Send(std::string method, std::string target, json::Value body, Done done,
                       std::shared_ptr<size_t> bytes) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.Add("User-Agent", "mlflow");
  if (!body.IsNull()) request.headers.Add("Content-Type", "application/json");
  request.value = std::move(body);
  request.takes_values = true;
  submit_(std::move(request), user_,
          std::make_shared<AnswerTaker>(std::move(done), std::move(bytes)));
}

void KindsClient::Get(std::string_view plural, std::string_view name, Done done) {
  Send("GET", PathOf(plural, name), nullptr, std::move(done));
}

void KindsClient::CheckMayList(std::string_view plural, Done done) {
  Send("GET", PathOf(plural, "") + "?limit=1", nullptr, std::move(done));
}

void KindsClient::List(std::string_view plural, const std::string& field_selector, Done done) {
  std::string base =
      fmt::format("{}?limit={}{}", PathOf(plural, ""), kMaxRegistryPage, Selecting(field_selector));
  if (has_slot_) return ListOn(std::move(base), "", {}, std::move(done));
  auto shared = std::make_shared<Done>(std::move(done));
  auto begin = [self = shared_from_this(), base = std::move(base), shared](ScanTurns::Slot slot) {
    self->slot_ = std::move(slot);
    self->has_slot_ = true;
    self->ListOn(base, "", {}, std::move(*shared));
  };
  if (!scans_->Wait(user_.name, std::move(begin)))
    (*shared)(Error(Reason::kTooManyRequests, "too many searches wait: try again later"));
}

void KindsClient::ListOn(std::string base, std::string token, Scanned so_far, Done done) {
  std::string target = token.empty() ? base : base + "&continue=" + PercentEncode(token);
  auto bytes = std::make_shared<size_t>(0);
  auto on_page = [self = shared_from_this(), base = std::move(base), so_far = std::move(so_far),
                  done = std::move(done), bytes](Result<json::Value> page) mutable {
    if (!page) return done(std::move(page));
    for (const json::Value& item : (*page)["items"].items())
      so_far.objects = std::move(so_far.objects).Append(item);
    so_far.bytes += *bytes;
    std::string next = (*page)["metadata"]["continue"].Str();
    if (next.empty()) return done(std::move(so_far.objects));
    if (so_far.bytes > kMaxRegistryScanBytes) return done(Error(TooLarge()));
    if (so_far.objects.size() >= kMaxRegistryScan) {
      return done(Error(Reason::kInvalid, "there are more than {} of them: search by name",
                        kMaxRegistryScan));
    }
    // The next page is for another task of the loop.
    self->core_.loop.Post(
        self->core_.Guarded([self, base = std::move(base), next = std::move(next),
                             so_far = std::move(so_far), done = std::move(done)]() mutable {
          self->ListOn(std::move(base), std::move(next), std::move(so_far), std::move(done));
        }));
  };
  Send("GET", std::move(target), nullptr, std::move(on_page), std::move(bytes));
}

void KindsClient::Away(std::function<Result<std::string>()> work,
                       std::function<void(Result<std::string>)> done) {
  if (core_.options.pool == nullptr) return done(work());
  auto result = std::make_shared<Result<std::string>>();
  core_.options.pool->Run([work = std::move(work), result] { *result = work(); }, core_.loop,
                          core_.Guarded([self = shared_from_this(), done = std::move(done),
                                         result] { done(std::move(*result)); }));
}

void KindsClient::Create(std::string_view plural, json::Value object, Done done) {
  Send("POST", PathOf(plural, ""), std::move(object), std::move(done));
}

void KindsClient::Delete(std::string_view plural, std::string_view name, Done done) {
  Send("DELETE", PathOf(plural, name), nullptr, std::move(done));
}

Status KindsClient::CheckMayDelete(std::string_view plural, std::string_view name) const {
  net::Request request;
  request.method = "DELETE";
  request.target = PathOf(plural, name);
  const Result<RequestInfo> info = ParseRequestInfo(request);
  return info ? core_.authorizer.Authorize(user_, *info) : Status(info.error());
}

void KindsClient::DeleteAll(std::string_view plural, const std::string& field_selector, Done done) {
  Send("DELETE", PathOf(plural, "") + "?" + Selecting(field_selector).substr(1), nullptr,
       std::move(done));
}

void KindsClient::Update(std::string_view plural, std::string_view name, Change change, Done done) {
  TryUpdate(std::string(plural), std::string(name), std::move(change), 1, std::move(done));
}

void KindsClient::TryUpdate(std::string plural, std::string name, Change change, int tries,
                            Done done) {
  auto self = shared_from_this();
  Get(plural, name,
      [self, plural, name, change = std::move(change), tries,
       done = std::move(done)](Result<json::Value> object) mutable {
        if (!object) return done(std::move(object));
        Result<json::Value> changed = change(*object);
        if (!changed) return done(std::move(changed));
        if (changed->IsNull()) return done(std::move(object));
        auto on_written = [self, plural, name, change = std::move(change), tries,
                           done = std::move(done)](Result<json::Value> written) mutable {
          if (written || written.error().reason() != Reason::kConflict ||
              tries >= kMaxRegistryTries) {
            return done(std::move(written));
          }
          self->core_.loop.After(
              kRetryInterval * tries,
              self->core_.Guarded([self, plural, name, change = std::move(change), tries,
                                   done = std::move(done)]() mutable {
                self->TryUpdate(plural, name, std::move(change), tries + 1, std::move(done));
              }));
        };
        self->Send("PUT", self->PathOf(plural, name), std::move(*changed), std::move(on_written));
      });
}

}  // namespace muster::apiserver
