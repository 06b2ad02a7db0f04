// GET pods/NAME/log: streamed from the node agent.

#include <array>

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_writer.h"
#include "apiserver/pods/pod_location.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

// One log on its way from the node to the client. Owns itself through the callbacks of the node's
// stream.
class LogRelay : public std::enable_shared_from_this<LogRelay> {
 public:
  LogRelay(Core& core, CallPtr call, json::Value pod, PodLocation location)
      : core_(core), call_(std::move(call)), pod_(std::move(pod)), location_(std::move(location)) {}

  void Start(net::Request request) {
    const std::weak_ptr<LogRelay> weak = weak_from_this();
    keep_ = shared_from_this();
    call_->writer()->OnPeerGone([weak] {
      if (const auto self = weak.lock()) self->Finish();
    });
    NodeStreamCallbacks callbacks;
    callbacks.on_head = [weak](int status, const net::Headers&) {
      if (const auto self = weak.lock()) self->OnHead(status);
    };
    callbacks.on_data = [weak](std::string_view bytes) {
      if (const auto self = weak.lock()) self->OnData(bytes);
    };
    callbacks.on_end = [weak](const Status& status) {
      if (const auto self = weak.lock()) self->OnEnd(status);
    };
    stream_ =
        core_.options.node_proxy->Stream(location_.node, std::move(request), std::move(callbacks));
  }

 private:
  void OnHead(int status) {
    status_ = status;
    if (status != 200) return;
    started_ = true;
    call_->writer()->StartStream(200, call_->StreamHeaders(200, "text/plain"));
  }

  void OnData(std::string_view bytes) {
    if (!started_) {
      error_text_ +=
          bytes.substr(0, kMaxNodeErrorBytes - std::min(kMaxNodeErrorBytes, error_text_.size()));
      return;
    }
    call_->writer()->Write(std::make_shared<const std::string>(bytes));
    if (call_->writer()->BufferedBytes() > kMaxLogBacklogBytes) Finish();
  }

  void OnEnd(const Status& status) {
    if (started_) {
      if (status.ok()) call_->writer()->End();
    } else if (!status.ok()) {
      call_->Fail(status.WithPrefix(fmt::format("cannot reach node {:?}: ", location_.node.node)));
    } else {
      call_->Fail(NodeError());
    }
    Finish();
  }

  // What the pod's status says is clearer than what the node says of a container that it has not
  // started.
  Status NodeError() const {
    const bool previous = call_->info().query.GetBool("previous");
    if (Status waiting = WaitingToStart(pod_, location_.container, previous); !waiting.ok())
      return waiting;
    const std::string text(Trim(error_text_));
    StatusDetails details;
    // A node that has just started: clients that see Retry-After ask again by themselves.
    if (status_ == 503) details.retry_after_seconds = 1;
    return Status(ReasonFromName("", status_),
                  text.empty() ? fmt::format("the node answered {}", status_) : text,
                  std::move(details));
  }

  // Lets go of the writer, too: a log that did not come to its end is cut, and the client knows.
  // Later: this may run inside a callback of the stream that it destroys.
  void Finish() {
    core_.loop.Post([keep = std::move(keep_)] {
      if (keep != nullptr) keep->stream_.reset();
    });
  }

  Core& core_;
  CallPtr call_;
  json::Value pod_;
  PodLocation location_;
  std::unique_ptr<NodeStream> stream_;
  std::shared_ptr<LogRelay> keep_;
  int status_ = 0;
  bool started_ = false;
  std::string error_text_;
};

Result<std::string> LogQuery(const net::Query& query) {
  net::Query out;
  for (const char* flag : {"follow", "previous", "timestamps"}) {
    if (query.GetBool(flag)) out.Add(flag, "true");
  }
  for (const char* number : {"tailLines", "sinceSeconds", "limitBytes"}) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> value, IntParameter(query, number));
    if (!value) continue;
    const bool zero_allowed = number == std::string_view("tailLines");
    if (*value < (zero_allowed ? 0 : 1)) {
      return Error(InvalidOptionsError(
          "PodLogOptions", {InvalidField(number, json::Value(*value),
                                         zero_allowed ? "must be greater than or equal to 0"
                                                      : "must be greater than 0")}));
    }
    out.Add(number, std::to_string(*value));
  }
  if (const std::string_view since = query.Get("sinceTime"); !since.empty()) {
    if (!ParseTime(since))
      return Error(Reason::kBadRequest, "sinceTime {:?} must be an RFC 3339 time", since);
    out.Add("sinceTime", std::string(since));
  }
  return out.Encode();
}

Status StartLog(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  const RequestInfo& info = call->info();
  if (info.method != "GET") return MethodNotAllowedError();
  ASSIGN_OR_RETURN(const std::string query, LogQuery(info.query));
  ASSIGN_OR_RETURN(Found found, FindObject(core, *pods->kind, info.ns, info.name));
  ASSIGN_OR_RETURN(PodLocation location,
                   LocatePod(core, found.object, info.query.Get("container")));
  net::Request request;
  request.method = "GET";
  request.target =
      fmt::format("/containerLogs/{}/{}/{}{}{}", PercentEncode(info.ns), PercentEncode(info.name),
                  PercentEncode(location.container), query.empty() ? "" : "?", query);
  std::make_shared<LogRelay>(core, call, std::move(found.object), std::move(location))
      ->Start(std::move(request));
  return Status::Ok();
}

}  // namespace

void HandleLog(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  if (Status status = StartLog(core, call, pods); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
