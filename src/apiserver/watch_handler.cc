// GET with watch=true.

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/list_parameters.h"
#include "apiserver/reply.h"
#include "apiserver/selection.h"
#include "apiserver/stored_object.h"
#include "apiserver/watch/event_hub.h"
#include "apiserver/watch/watcher.h"
#include "base/bounded_seconds.h"
#include "schema/protobuf_codec.h"

namespace muster::apiserver {
namespace {

// A watch without timeoutSeconds lasts between one and two of these (upstream's MinRequestTimeout).
constexpr int64_t kMinWatchSeconds = 1800;

// Sets where the watch starts and what it sends first.
Status PlanStart(Core& core, const ListParameters& list, WatchSpec& spec) {
  const store::Revision wanted = list.revision.value_or(0);
  if (wanted > 0 && !list.send_initial_events.value_or(false)) {
    spec.after = wanted;
    return Status::Ok();
  }
  spec.after = core.store.CommittedRevision();
  if (wanted > spec.after) return ResourceVersionTooLargeError(wanted, spec.after);
  // sendInitialEvents=false starts at the present, without what exists.
  if (list.send_initial_events.has_value() && !*list.send_initial_events) return Status::Ok();
  ASSIGN_OR_RETURN(store::RangeResult range, core.store.Range(spec.selection->prefix(), "", 0, 0));
  spec.initial = std::move(range.entries);
  spec.initial_events_end = list.bookmarks && list.send_initial_events.value_or(false);
  return Status::Ok();
}

Status Watch(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (core.shutting_down)
    return Error(Reason::kServiceUnavailable, "the server is shutting down: watch elsewhere");
  WatchSpec spec;
  ASSIGN_OR_RETURN(spec.format, MakeFormat(call->Spoken(resource->kind),
                                           call->request().headers.Get("Accept"), call->info()));
  ASSIGN_OR_RETURN(const ListParameters list, ParseListParameters(call->info(), true));
  ASSIGN_OR_RETURN(spec.selection, Selection::Make(resource->kind, call->info()));
  spec.bookmarks = list.bookmarks;
  spec.timeout = BoundedSeconds(list.timeout_seconds > 0
                                    ? list.timeout_seconds
                                    : core.rng.Between(kMinWatchSeconds, 2 * kMinWatchSeconds));
  RETURN_IF_ERROR(PlanStart(core, list, spec));

  std::string content_type = "application/json";
  if (spec.format.encoding == Encoding::kProtobuf)
    content_type = std::string(schema::kProtobufMediaType) + ";stream=watch";
  EventHub& hub = core.hubs.For(KeyPrefix(*resource->kind));
  Task on_close = [&hub, weak = std::weak_ptr<int>(core.alive)] {
    if (weak.lock()) hub.SweepLater();
  };
  auto watcher = std::make_shared<Watcher>(core.loop, call->writer(), core.hubs.budget(),
                                           std::move(spec), std::move(on_close));
  call->writer()->StartStream(200, call->StreamHeaders(200, content_type));
  if (const Status status = hub.Add(watcher); !status.ok()) {
    watcher->Close(status);
    return Status::Ok();
  }
  watcher->Start();
  return Status::Ok();
}

}  // namespace

void HandleWatch(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Watch(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
