#include "client/in_process_transport.h"

#include <string>
#include <utility>

namespace muster::client {
namespace {

constexpr size_t kDrainPieceBytes = 256 << 10;

// One request on its way: the handler's side is a ResponseWriter, the caller's side a set of
// callbacks. Every callback goes through the loop, so neither side ever runs inside the other.
class Call final : public net::ResponseWriter, public std::enable_shared_from_this<Call> {
 public:
  Call(Loop& loop, std::weak_ptr<const bool> transport, bool takes_values)
      : loop_(loop), transport_(std::move(transport)), takes_values_(takes_values) {}

  // The handler let go of the last reference: what it did not finish is an error of its own.
  ~Call() override {
    // With the transport gone nobody listens, and the loop itself may be on its way out.
    if (ended_ || abandoned_ || transport_.expired()) return;
    if (!answered_) {
      Reply(InternalError());
    } else if (stream_.on_end) {
      loop_.Post([on_end = std::move(stream_.on_end), alive = alive_]() mutable {
        if (*alive) on_end(Status(Reason::kServiceUnavailable, "the server dropped the stream"));
      });
    }
  }

  void Send(net::Response response) override {
    if (answered_) return;
    answered_ = true;
    if (response.source != nullptr) {
      while (response.source->Next(kDrainPieceBytes, response.body)) {
      }
      response.source.reset();
    }
    Reply(std::move(response));
  }

  void StartStream(int status, net::Headers headers) override {
    if (answered_) return;
    answered_ = true;
    if (stream_.on_head) {
      Later([status, headers = std::move(headers)](Call& call) {
        call.stream_.on_head(status, headers);
      });
      return;
    }
    collected_.status = status;
    collected_.headers = std::move(headers);
  }

  void Write(std::shared_ptr<const std::string> bytes) override {
    if (ended_) return;
    if (!stream_.on_data) {
      collected_.body += *bytes;
      return;
    }
    buffered_ += bytes->size();
    Later([bytes = std::move(bytes)](Call& call) {
      call.buffered_ -= bytes->size();
      call.stream_.on_data(*bytes);
    });
  }

  void WriteValue(json::Value value, size_t bytes) override {
    if (ended_) return;
    buffered_ += bytes;
    Later([value = std::move(value), bytes](Call& call) mutable {
      call.buffered_ -= bytes;
      call.stream_.on_value(std::move(value));
    });
  }

  bool TakesValues() const override { return takes_values_; }

  void End() override {
    if (ended_) return;
    ended_ = true;
    if (stream_.on_end) {
      Later([](Call& call) { call.stream_.on_end(Status::Ok()); });
    } else if (done_) {
      Reply(std::move(collected_));
    }
  }

  size_t BufferedBytes() const override { return buffered_; }

  // Byte streams need a connection; nobody in this process asks for one.
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override { return nullptr; }

  void OnPeerGone(Task task) override {
    if (abandoned_) {
      loop_.Post(std::move(task));
    } else {
      peer_gone_ = std::move(task);
    }
  }

  void Expect(Function<void(Result<net::Response>)> done) { done_ = std::move(done); }
  void Expect(StreamCallbacks callbacks) { stream_ = std::move(callbacks); }

  // The caller is gone. The callbacks may be running now, so they are not destroyed here.
  void Abandon() {
    if (abandoned_) return;
    abandoned_ = true;
    if (!ended_ && peer_gone_) loop_.Post(std::move(peer_gone_));
    peer_gone_ = nullptr;
  }

 private:
  static net::Response InternalError() {
    net::Response response;
    response.status = 500;
    response.body = "the handler gave no answer";
    return response;
  }

  // Keeps the call alive until the loop gets to it.
  void Later(Function<void(Call&)> work) {
    loop_.Post([self = shared_from_this(), work = std::move(work)]() mutable {
      if (!self->abandoned_) work(*self);
    });
  }

  // Also runs from the destructor, so it must not need `this` afterwards.
  void Reply(net::Response response) {
    ended_ = true;
    if (abandoned_) return;
    if (done_) {
      loop_.Post([done = std::move(done_), response = std::move(response)]() mutable {
        done(std::move(response));
      });
    } else if (stream_.on_end) {
      loop_.Post(
          [stream = std::move(stream_), response = std::move(response), alive = alive_]() mutable {
            if (*alive) stream.on_head(response.status, response.headers);
            if (*alive && !response.body.empty()) stream.on_data(response.body);
            if (*alive) stream.on_end(Status::Ok());
          });
    }
  }

 public:
  // True until the caller's handle dies; shared with replies that outlive this object.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

 private:
  Loop& loop_;
  const std::weak_ptr<const bool> transport_;
  const bool takes_values_;
  Function<void(Result<net::Response>)> done_;
  StreamCallbacks stream_;
  net::Response collected_;
  Task peer_gone_;
  size_t buffered_ = 0;
  bool answered_ = false;
  bool ended_ = false;
  bool abandoned_ = false;
};

class CallHandle final : public StreamHandle {
 public:
  explicit CallHandle(const std::shared_ptr<Call>& call) : call_(call), alive_(call->alive_) {}
  ~CallHandle() override {
    *alive_ = false;
    if (const std::shared_ptr<Call> call = call_.lock()) call->Abandon();
  }

 private:
  std::weak_ptr<Call> call_;  // the handler decides how long a call lives
  std::shared_ptr<bool> alive_;
};

}  // namespace

InProcessTransport::InProcessTransport(Loop& loop, net::Handler& handler, net::Peer peer)
    : loop_(loop), handler_(handler), peer_(std::move(peer)) {}

InProcessTransport::~InProcessTransport() = default;

void InProcessTransport::Send(net::Request request, Function<void(Result<net::Response>)> done) {
  request.peer = peer_;
  auto call = std::make_shared<Call>(loop_, lifetime_.Watch(), request.takes_values);
  call->Expect(lifetime_.Guard(std::move(done)));
  loop_.Post(
      lifetime_.Guard([this, request = std::move(request), call = std::move(call)]() mutable {
        handler_.Handle(std::move(request), std::move(call));
      }));
}

std::unique_ptr<StreamHandle> InProcessTransport::Stream(net::Request request,
                                                         StreamCallbacks callbacks) {
  request.peer = peer_;
  auto call = std::make_shared<Call>(loop_, lifetime_.Watch(), request.takes_values);
  call->Expect(std::move(callbacks));
  auto handle = std::make_unique<CallHandle>(call);
  loop_.Post(
      lifetime_.Guard([this, request = std::move(request), call = std::move(call)]() mutable {
        handler_.Handle(std::move(request), std::move(call));
      }));
  return handle;
}

}  // namespace muster::client
