#include "apiserver/admission/admission.h"

#include <set>

#include "apiserver/errors.h"
#include "apiserver/services/service_resolver.h"
#include "apiserver/stored_object.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/patch.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/conversion.h"
#include "schema/defaulting.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr size_t kShownAnswerBytes = 256;  // of an answer that is no review

// As upstream labels its metrics.
std::string_view TypeName(bool mutating) { return mutating ? "admit" : "validating"; }

// Who configures webhooks must be able to take them away again.
bool IsExempt(const schema::Kind& kind) {
  return kind.group == "admissionregistration.k8s.io" &&
         (kind.plural == "mutatingwebhookconfigurations" ||
          kind.plural == "validatingwebhookconfigurations");
}

bool IsNamespace(const AdmissionRequest& request) {
  return request.kind->group.empty() && request.kind->plural == "namespaces";
}

bool FitsObjects(const schema::LabelSelector& selector, const AdmissionRequest& request) {
  if (selector.empty()) return true;
  for (const json::Value* object : {&request.object, &request.old_object}) {
    if (object->Has("metadata") && selector.Matches((*object)["metadata"]["labels"])) return true;
  }
  return false;
}

std::string TimeoutQuery(Duration timeout) {
  return fmt::format("?timeout={}s", std::chrono::duration_cast<seconds>(timeout).count());
}

std::string UrlOf(const Webhook& webhook) {
  const std::string query = TimeoutQuery(webhook.timeout);
  if (!webhook.url.empty()) return webhook.url + query;
  const WebhookService& service = webhook.service;
  const bool slash = service.path.starts_with('/');
  return fmt::format("https://{}.{}.svc:{}{}{}{}", service.name, service.ns, service.port,
                     slash ? "" : "/", service.path, query);
}

// The words of client-go's REST client.
std::string WordsOf(const net::Response& response) {
  if (response.status == 404) return "the server could not find the requested resource";
  return fmt::format("an error on the server ({:?}) has prevented the request from succeeding",
                     Trim(response.body.substr(0, kShownAnswerBytes)));
}

Status CallError(const Webhook& webhook, const Status& why) {
  const std::string words =
      why.reason() == Reason::kTimeout ? "context deadline exceeded" : why.message();
  return Error(Reason::kUnknown, "failed to call webhook: Post \"{}\": {}", UrlOf(webhook), words);
}

// One pass over the mutating webhooks, and a second one for those that want to see what later ones
// did. Owns itself through the callbacks.
class MutatingRun : public std::enable_shared_from_this<MutatingRun> {
 public:
  MutatingRun(Admission& admission, std::vector<WebhookPtr> webhooks, AdmissionRequest request,
              Admission::Mutated done)
      : admission_(admission),
        webhooks_(std::move(webhooks)),
        request_(std::move(request)),
        done_(std::move(done)) {}

  void Step() {
    for (;;) {
      if (next_ == webhooks_.size()) {
        if (second_pass_ || again_.empty()) return done_(std::move(request_.object));
        second_pass_ = true;
        next_ = 0;
      }
      const WebhookPtr webhook = webhooks_[next_++];
      const auto seen = admission_.Match(*webhook, request_);
      if (!seen) return done_(Error(seen.error()));
      if (!*seen || (second_pass_ && !again_.contains(webhook.get()))) continue;
      if (const Status status = Admission::CheckDryRun(*webhook, request_); !status.ok())
        return done_(Error(status));
      return admission_.Ask(
          webhook, ***seen, request_, true,
          [self = shared_from_this(), webhook, kind = **seen](const Result<ReviewAnswer>& answer) {
            self->OnAnswer(*webhook, *kind, answer);
          });
    }
  }

 private:
  void OnAnswer(const Webhook& webhook, const schema::Kind& seen,
                const Result<ReviewAnswer>& answer) {
    if (const Status status = admission_.Judge(webhook, request_, true, answer); !status.ok())
      return done_(Error(status));
    if (answer && !answer->patch.empty()) {
      Result<json::Value> changed = ApplyReviewPatch(webhook, request_, seen, answer->patch);
      if (!changed) return done_(Error(changed.error()));
      if (!(*changed == request_.object)) {
        request_.object = std::move(*changed);
        again_.insert(asked_.begin(), asked_.end());
        asked_.clear();
      }
    }
    if (webhook.asked_again) asked_.insert(&webhook);
    Step();
  }

  Admission& admission_;
  const std::vector<WebhookPtr> webhooks_;
  AdmissionRequest request_;
  Admission::Mutated done_;
  size_t next_ = 0;
  bool second_pass_ = false;
  // With reinvocationPolicy IfNeeded: asked and nothing changed since; something did.
  std::set<const Webhook*> asked_, again_;
};

// All validating webhooks at once. The first refusal, in their order, is the client's.
struct ValidatingRun {
  std::vector<Status> verdicts;
  size_t missing = 1;  // one for the loop that asks
  Admission::Checked done;

  void Finish() {
    if (--missing > 0) return;
    for (const Status& verdict : verdicts)
      if (!verdict.ok()) return done(verdict);
    done(Status::Ok());
  }
};

}  // namespace

Admission::Admission(Core& core)
    : core_(core),
      index_(core.store),
      durations_(core.metrics.Histogram(
          "apiserver_admission_webhook_admission_duration_seconds",
          "Time until a webhook has answered, or could not.",
          {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30})),
      rejections_(core.metrics.Counter("apiserver_admission_webhook_rejection_count",
                                       "Requests that a webhook, or its absence, refused.")),
      opened_(core.metrics.Counter("apiserver_admission_webhook_fail_open_count",
                                   "Requests that went on without a webhook's answer.")) {}

void Admission::Mutate(AdmissionRequest request, Mutated done) {
  if (index_.mutating().empty() || IsExempt(*request.kind)) return done(std::move(request.object));
  std::make_shared<MutatingRun>(*this, index_.mutating(), std::move(request), std::move(done))
      ->Step();
}

void Admission::Validate(AdmissionRequest request, Checked done) {
  if (index_.validating().empty() || IsExempt(*request.kind)) return done(Status::Ok());
  const std::vector<WebhookPtr> webhooks = index_.validating();
  auto run = std::make_shared<ValidatingRun>();
  run->verdicts.resize(webhooks.size());
  run->done = std::move(done);
  for (size_t i = 0; i < webhooks.size(); ++i) {
    const WebhookPtr& webhook = webhooks[i];
    const auto seen = Match(*webhook, request);
    if (seen && !*seen) continue;
    Status& verdict = run->verdicts[i];
    verdict = seen ? CheckDryRun(*webhook, request) : seen.error();
    if (!verdict.ok()) continue;
    ++run->missing;
    Ask(webhook, ***seen, request, false,
        [this, run, i, webhook, request](const Result<ReviewAnswer>& answer) {
          run->verdicts[i] = Judge(*webhook, request, false, answer);
          run->Finish();
        });
  }
  run->Finish();
}

void Admission::Run(AdmissionRequest request, Mutated done) {
  AdmissionRequest copy = request;
  Mutate(std::move(copy), [this, request = std::move(request),
                           done = std::move(done)](Result<json::Value> object) mutable {
    if (!object) return done(std::move(object));
    request.object = *object;
    Validate(std::move(request),
             [object = std::move(*object), done = std::move(done)](const Status& status) mutable {
               if (!status.ok()) return done(Error(status));
               done(std::move(object));
             });
  });
}

Result<bool> Admission::FitsNamespace(const Webhook& webhook,
                                      const AdmissionRequest& request) const {
  if (webhook.namespaces.empty() || (request.ns.empty() && !IsNamespace(request))) return true;
  const bool writes =
      request.operation == Operation::kCreate || request.operation == Operation::kUpdate;
  // What the store has of a Namespace is older than what is being written.
  if (IsNamespace(request) && request.subresource.empty() && writes)
    return webhook.namespaces.Matches(request.object["metadata"]["labels"]);
  const schema::Kind& namespaces = *schema::Registry::BuiltIn().Find("", "v1", "namespaces");
  const store::EntryPtr entry = core_.store.GetLatest(ObjectKey(namespaces, "", request.ns));
  if (entry == nullptr) return Error(NotFoundError(namespaces, request.ns));
  const ObjectMeta& meta = MetaOf(*entry);
  return webhook.namespaces.MatchesBy([&](std::string_view name) { return meta.Label(name); });
}

Result<std::optional<schema::KindPtr>> Admission::Match(const Webhook& webhook,
                                                        const AdmissionRequest& request) const {
  std::optional<schema::KindPtr> seen;
  if (webhook.Fits(request.Subject(*request.kind))) {
    seen = request.kind;
  } else if (webhook.equivalent) {
    for (const ResourcePtr& other :
         core_.registry.VersionsOf(request.kind->group, request.kind->plural)) {
      if (!seen && webhook.Fits(request.Subject(*other->kind))) seen = other->kind;
    }
  }
  if (!seen || !FitsObjects(webhook.objects, request)) return std::nullopt;
  ASSIGN_OR_RETURN(const bool fits, FitsNamespace(webhook, request));
  return fits ? seen : std::nullopt;
}

Status Admission::CheckDryRun(const Webhook& webhook, const AdmissionRequest& request) {
  if (!request.dry_run || !webhook.has_side_effects) return Status::Ok();
  return Error(Reason::kBadRequest, "admission webhook \"{}\" does not support dry run",
               webhook.name);
}

Result<WebhookTarget> Admission::TargetOf(const Webhook& webhook) const {
  ASSIGN_OR_RETURN(const net::ParsedUrl url, net::ParseUrl(UrlOf(webhook)));
  WebhookTarget target;
  target.endpoint = url.endpoint;
  target.host = url.endpoint.ToString().substr(std::string_view("https://").size());
  target.path = url.path.starts_with('/') ? url.path : "/" + url.path;
  target.ca_pem = webhook.ca_pem;
  if (!webhook.url.empty()) return target;
  const WebhookService& service = webhook.service;
  ASSIGN_OR_RETURN(const ResolvedService resolved,
                   ResolveService(core_, service.ns, service.name, service.port));
  target.endpoint.server_name = url.endpoint.host;
  target.endpoint.host = resolved.host;
  target.endpoint.port = resolved.port;
  target.in_cluster = resolved.in_cluster;
  return target;
}

void Admission::Ask(const WebhookPtr& webhook, const schema::Kind& seen,
                    const AdmissionRequest& request, bool mutating, Answered done) {
  Result<WebhookTarget> target = TargetOf(*webhook);
  if (target && core_.options.webhook_client == nullptr)
    target = Error(Reason::kServiceUnavailable, "this server does not call webhooks");
  const std::string uid = core_.rng.Uuid();
  std::string body;
  if (target) body = json::Write(MakeReview(request, seen, webhook->review_version, uid));
  const size_t size = body.size();
  if (under_way_ >= kMaxWebhookCalls || bytes_under_way_ + size > kMaxWebhookBytes)
    target = Error(Reason::kTooManyRequests, "too many calls of webhooks are under way");
  if (!target) {
    const Status why = CallError(*webhook, target.error());
    core_.loop.Post(core_.Guarded([why, done = std::move(done)]() mutable { done(Error(why)); }));
    return;
  }
  ++under_way_;
  bytes_under_way_ += size;
  core_.options.webhook_client->Post(
      *target, std::move(body), webhook->timeout,
      [this, weak = std::weak_ptr<int>(core_.alive), webhook, mutating, uid, size,
       operation = request.operation, start = core_.loop.Now(),
       done = std::move(done)](const Result<net::Response>& response) mutable {
        if (!weak.lock()) return;
        --under_way_;
        bytes_under_way_ -= size;
        durations_.Observe({{"name", webhook->name},
                            {"type", TypeName(mutating)},
                            {"operation", OperationName(operation)}},
                           std::chrono::duration<double>(core_.loop.Now() - start).count());
        if (!response) return done(Error(CallError(*webhook, response.error())));
        if (response->status < 200 || response->status > 299) {
          return done(Error(Reason::kUnknown, "failed to call webhook: {}", WordsOf(*response)));
        }
        Result<ReviewAnswer> answer =
            ReadReview(response->body, webhook->review_version, uid, mutating);
        if (!answer)
          answer = Error(answer.error().WithPrefix("received invalid webhook response: "));
        done(std::move(answer));
      });
}

Status Admission::Judge(const Webhook& webhook, const AdmissionRequest& request, bool mutating,
                        const Result<ReviewAnswer>& answer) {
  const auto count = [&](CounterFamily& family) {
    family.Add({{"name", webhook.name},
                {"type", TypeName(mutating)},
                {"operation", OperationName(request.operation)}});
  };
  if (answer) {
    request.call->Warn(answer->warnings);
    if (answer->allowed) return Status::Ok();
    count(rejections_);
    Denial denial = MakeDenial(webhook.name, answer->result);
    request.call->AnswerExactly(denial.status, denial.code, std::move(denial.reason));
    return denial.status;
  }
  const std::string why =
      fmt::format("failed calling webhook \"{}\": {}", webhook.name, answer.error().message());
  count(webhook.fails_open ? opened_ : rejections_);
  if (!webhook.fails_open) return InternalError(why);
  LOG_WARN("apiserver: {} and its failurePolicy is Ignore", why);
  return Status::Ok();
}

void AdmitUnstored(Core& core, const CallPtr& call, const ResourcePtr& resource,
                   Operation operation, bool dry_run, json::Value object,
                   Function<Status(const json::Value& admitted)> go_on) {
  const auto finish = [call](Function<Status(const json::Value&)>& next,
                             const Result<json::Value>& admitted) {
    const Status status = admitted ? next(*admitted) : admitted.error();
    if (!status.ok()) call->Fail(status);
  };
  if (core.admission->idle()) return finish(go_on, object);
  AdmissionRequest request = MakeAdmissionRequest(call, resource, operation, dry_run);
  request.own_object = true;
  if (request.name.empty()) request.name = object["metadata"]["name"].Str();
  request.object = std::move(object);
  core.admission->Run(std::move(request), [finish, go_on = std::move(go_on)](
                                              const Result<json::Value>& admitted) mutable {
    finish(go_on, admitted);
  });
}

Result<json::Value> ApplyReviewPatch(const Webhook& webhook, const AdmissionRequest& request,
                                     const schema::Kind& seen, const json::Value& patch) {
  if (request.object.IsNull()) {
    return Error(InternalError(
        fmt::format("admission webhook \"{}\" attempted to modify the object, which is not "
                    "supported for this operation",
                    webhook.name)));
  }
  const json::Value before = request.own_object ? request.object : AsSeen(seen, request.object);
  Result<json::Value> after = json::ApplyJsonPatch(before, patch);
  if (!after) return Error(InternalError(after.error().message()));
  if (!after->IsObject()) return Error(InternalError("the patch leaves no object"));
  json::Value object = after->Set("kind", before["kind"]).Set("apiVersion", before["apiVersion"]);
  if (request.own_object) return object;
  Result<json::Value> conforming = schema::Conform(seen, object, nullptr);
  if (!conforming) return Error(InternalError(conforming.error().message()));
  const schema::Kind& stored = schema::StoredKind(seen);
  object = schema::ToStored(seen, *conforming).object;
  object = std::move(object).Set("apiVersion", stored.GroupVersion());
  return schema::ApplyDefaults(stored, std::move(object));
}

}  // namespace muster::apiserver
