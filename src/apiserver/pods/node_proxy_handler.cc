// Any method on nodes/NAME/proxy/PATH: the node agent's own answer. Not for streams.

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_writer.h"
#include "apiserver/pods/pod_location.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

// One answer on its way from the node. Owns itself through the callbacks of the node's stream.
class ProxyRelay : public std::enable_shared_from_this<ProxyRelay> {
 public:
  ProxyRelay(Core& core, CallPtr call, NodeEndpoint node)
      : core_(core), call_(std::move(call)), node_(std::move(node)) {}

  void Start(net::Request request) {
    keep_ = shared_from_this();
    const std::weak_ptr<ProxyRelay> weak = weak_from_this();
    call_->writer()->OnPeerGone([weak] {
      if (const auto self = weak.lock()) self->Finish();
    });
    NodeStreamCallbacks callbacks;
    callbacks.on_head = [weak](int status, const net::Headers& headers) {
      if (const auto self = weak.lock()) self->OnHead(status, headers);
    };
    callbacks.on_data = [weak](std::string_view bytes) {
      if (const auto self = weak.lock()) self->OnData(bytes);
    };
    callbacks.on_end = [weak](const Status& status) {
      if (const auto self = weak.lock()) self->OnEnd(status);
    };
    stream_ = core_.options.node_proxy->Stream(node_, std::move(request), std::move(callbacks));
  }

 private:
  void OnHead(int status, const net::Headers& headers) {
    response_.status = status;
    response_.headers.Set("Content-Type", std::string(headers.Get("Content-Type")));
  }

  void OnData(std::string_view bytes) {
    if (response_.body.size() + bytes.size() <= kMaxNodeAnswerBytes) {
      response_.body += bytes;
      return;
    }
    call_->Fail(Error(Reason::kRequestEntityTooLarge,
                      "the answer of node {:?} has more than {} "
                      "bytes",
                      node_.node, kMaxNodeAnswerBytes));
    Finish();
  }

  void OnEnd(const Status& status) {
    if (status.ok()) {
      call_->Send(std::move(response_));
    } else {
      call_->Fail(status.WithPrefix(fmt::format("cannot reach node {:?}: ", node_.node)));
    }
    Finish();
  }

  // Later: this may run inside a callback of the stream that it destroys.
  void Finish() {
    core_.loop.Post([keep = std::move(keep_)] {
      if (keep != nullptr) keep->stream_.reset();
    });
  }

  Core& core_;
  CallPtr call_;
  NodeEndpoint node_;
  net::Response response_;
  std::unique_ptr<NodeStream> stream_;
  std::shared_ptr<ProxyRelay> keep_;
};

Status StartProxy(Core& core, const CallPtr& call) {
  const RequestInfo& info = call->info();
  ASSIGN_OR_RETURN(NodeEndpoint node, LocateNode(core, info.name));
  net::Request request;
  request.method = info.method;
  for (std::string_view part : SplitNonEmpty(info.rest, '/'))
    request.target += "/" + PercentEncode(part);
  if (request.target.empty()) request.target = "/";
  if (const std::string query = info.query.Encode(); !query.empty()) request.target += "?" + query;
  request.body = call->request().body;
  if (call->request().headers.Has("Content-Type"))
    request.headers.Set("Content-Type", std::string(call->request().headers.Get("Content-Type")));
  std::make_shared<ProxyRelay>(core, call, std::move(node))->Start(std::move(request));
  return Status::Ok();
}

}  // namespace

void HandleNodeProxy(Core& core, const CallPtr& call) {
  AdmitUnstored(
      core, call, core.registry.Find("", "v1", "nodes"), Operation::kConnect, false,
      json::Obj(
          {{"kind", "NodeProxyOptions"}, {"apiVersion", "v1"}, {"path", "/" + call->info().rest}}),
      [&core, call](const json::Value&) { return StartProxy(core, call); });
}

}  // namespace muster::apiserver
