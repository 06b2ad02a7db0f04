#include "apiserver/admitted_write.h"

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "schema/defaulting.h"

namespace muster::apiserver {
namespace {

class UpdateRun : public std::enable_shared_from_this<UpdateRun> {
 public:
  UpdateRun(Core& core, CallPtr call, ResourcePtr resource, UpdateScope scope, bool dry_run,
            WantedObject wanted, WriteDone done)
      : core_(core),
        call_(std::move(call)),
        resource_(std::move(resource)),
        scope_(scope),
        wanted_(std::move(wanted)),
        done_(std::move(done)),
        context_{*resource_->kind,
                 resource_->kind->namespaced ? call_->info().ns : "",
                 call_->info().name,
                 core.loop.Now(),
                 dry_run,
                 {},
                 &call_->user()} {}

  void Start() {
    if (const Status status = TryStart(); !status.ok()) done_(Error(status));
  }

 private:
  Status TryStart() {
    ASSIGN_OR_RETURN(found_, FindObject(core_, *resource_->kind, context_.ns, context_.name));
    ASSIGN_OR_RETURN(json::Value wanted, wanted_(found_.object));
    if (core_.admission->idle()) return Write(std::move(wanted));
    RETURN_IF_ERROR(CheckUpdatable(*resource_, context_, found_.object, wanted));
    AdmissionRequest request =
        MakeAdmissionRequest(call_, resource_, Operation::kUpdate, context_.dry_run);
    request.object = schema::ApplyDefaults(
        *resource_->kind, KeepSystemFields(*resource_->kind, found_.object, wanted));
    request.old_object = found_.object;
    const json::Value sent = request.object;
    core_.admission->Mutate(
        std::move(request),
        [self = shared_from_this(), wanted = std::move(wanted), sent](Result<json::Value> changed) {
          if (!changed) return self->done_(Error(changed.error()));
          self->Mutated(*changed == sent ? wanted : *changed);
        });
    return Status::Ok();
  }

  bool Overtaken() const { return core_.store.GetLatest(found_.entry->key) != found_.entry; }

  void Again() {
    if (++attempts_ < kMaxAdmissionAttempts) return Start();
    done_(Error(ConflictError(*resource_->kind, context_.name)));
  }

  Result<json::Value> Prepare(json::Value wanted) {
    return PrepareUpdate(*resource_, context_, found_.object, std::move(wanted), scope_);
  }

  void Mutated(json::Value wanted) {
    if (Overtaken()) return Again();
    Result<json::Value> after = Prepare(std::move(wanted));
    if (!after) return done_(Error(after.error()));
    AdmissionRequest request =
        MakeAdmissionRequest(call_, resource_, Operation::kUpdate, context_.dry_run);
    request.object = *after;
    request.old_object = found_.object;
    core_.admission->Validate(std::move(request),
                              [self = shared_from_this(), after = *after](const Status& status) {
                                if (!status.ok()) return self->done_(Error(status));
                                if (self->Overtaken()) return self->Again();
                                self->Replace(after);
                              });
  }

  // Without webhooks.
  Status Write(json::Value wanted) {
    ASSIGN_OR_RETURN(json::Value after, Prepare(std::move(wanted)));
    Replace(std::move(after));
    return Status::Ok();
  }

  void Replace(json::Value after) {
    call_->Warn(context_.warnings);
    ReplaceObject(core_, resource_, context_, found_, std::move(after), std::move(done_));
  }

  Core& core_;
  const CallPtr call_;
  const ResourcePtr resource_;
  const UpdateScope scope_;
  const WantedObject wanted_;
  WriteDone done_;
  WriteContext context_;
  Found found_;
  int attempts_ = 0;
};

// What the body of a DELETE may have said as well.
json::Value WithOptions(json::Value shown, const DeleteOptions& options) {
  if (options.grace_period_seconds)
    shown = std::move(shown).Set("gracePeriodSeconds", *options.grace_period_seconds);
  if (options.propagation) {
    const char* policy = *options.propagation == Propagation::kForeground ? "Foreground"
                         : *options.propagation == Propagation::kOrphan   ? "Orphan"
                                                                          : "Background";
    shown = std::move(shown).Set("propagationPolicy", policy);
  }
  if (!options.uid.empty()) shown = std::move(shown).SetPath({"preconditions", "uid"}, options.uid);
  if (!options.resource_version.empty()) {
    shown =
        std::move(shown).SetPath({"preconditions", "resourceVersion"}, options.resource_version);
  }
  return shown;
}

class DeleteRun : public std::enable_shared_from_this<DeleteRun> {
 public:
  DeleteRun(Core& core, CallPtr call, ResourcePtr resource, std::string ns, std::string name,
            DeleteOptions options, DeleteDone done)
      : core_(core),
        call_(std::move(call)),
        resource_(std::move(resource)),
        ns_(std::move(ns)),
        name_(std::move(name)),
        options_(std::move(options)),
        done_(std::move(done)) {}

  void Start() {
    const Result<Found> found = FindObject(core_, *resource_->kind, ns_, name_);
    if (!found) return done_(Error(found.error()));
    AdmissionRequest request =
        MakeAdmissionRequest(call_, resource_, Operation::kDelete, options_.dry_run);
    request.name = name_;
    if (resource_->kind->plural == "namespaces" && resource_->kind->group.empty())
      request.ns = name_;
    request.old_object = found->object;
    request.options = WithOptions(std::move(request.options), options_);
    core_.admission->Run(std::move(request), [self = shared_from_this(), entry = found->entry](
                                                 const Result<json::Value>& answer) {
      if (!answer) return self->done_(Error(answer.error()));
      const bool overtaken = self->core_.store.GetLatest(entry->key) != entry;
      if (overtaken && ++self->attempts_ < kMaxAdmissionAttempts) return self->Start();
      if (overtaken) return self->done_(Error(ConflictError(*self->resource_->kind, self->name_)));
      DeleteObject(self->core_, self->resource_, self->ns_, self->name_, self->options_,
                   std::move(self->done_));
    });
  }

 private:
  Core& core_;
  const CallPtr call_;
  const ResourcePtr resource_;
  const std::string ns_, name_;
  const DeleteOptions options_;
  DeleteDone done_;
  int attempts_ = 0;
};

}  // namespace

void AdmittedUpdate(Core& core, const CallPtr& call, const ResourcePtr& resource, UpdateScope scope,
                    bool dry_run, WantedObject wanted, WriteDone done) {
  std::make_shared<UpdateRun>(core, call, resource, scope, dry_run, std::move(wanted),
                              std::move(done))
      ->Start();
}

void AdmittedDelete(Core& core, const CallPtr& call, const ResourcePtr& resource,
                    const std::string& ns, const std::string& name, const DeleteOptions& options,
                    DeleteDone done) {
  if (core.admission->idle())
    return DeleteObject(core, resource, ns, name, options, std::move(done));
  std::make_shared<DeleteRun>(core, call, resource, ns, name, options, std::move(done))->Start();
}

}  // namespace muster::apiserver
