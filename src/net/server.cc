#include "net/server.h"

#include <cerrno>
#include <latch>
#include <utility>

#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "net/server_connection.h"
#include "net/sockets.h"

namespace muster::net {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kAcceptRetryDelay = milliseconds(100);  // when descriptors have run out

class Listener final : public IoObject, public FdEvents {
 public:
  Listener(std::shared_ptr<ServerCore> core, IoThreads& io, UniqueFd fd)
      : core_(std::move(core)),
        io_(io),
        thread_(io.At(0)),
        fd_(thread_->Watch(fd.Release(), *this)) {}

  void Begin() {
    thread_->Keep(shared_from_this());
    fd_->WaitReadable();
  }

  void Close() {
    thread_->Cancel(retry_);
    retry_ = 0;
    fd_.reset();
    thread_->Release(*this);
  }
  void Abort() override { Close(); }

  void OnReadable() override {
    for (int i = 0; i < kAcceptsPerTurn && fd_; ++i) {
      std::string peer;
      int fd = AcceptOne(fd_->fd(), peer);
      if (fd >= 0) {
        Admit(fd, std::move(peer));
        continue;
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        LOG_WARN("net: cannot accept a connection: out of descriptors or memory");
        retry_ = thread_->After(kAcceptRetryDelay, [this] { fd_->WaitReadable(); });
        return;
      }
      if (errno != ECONNABORTED && errno != EINTR) break;
    }
    fd_->WaitReadable();
  }
  void OnWritable() override {}

 private:
  void Admit(int fd, std::string peer) {
    if (core_->connections >= core_->options.max_connections || core_->stopping) {
      close(fd);
      if (!std::exchange(full_, true))
        LOG_WARN("net: connection limit of {} reached", core_->options.max_connections);
      return;
    }
    full_ = false;
    ++core_->connections;
    size_t index = next_++ % io_.size();
    auto begin = [core = core_, thread = io_.At(index), index, fd,
                  peer = std::move(peer)]() mutable {
      auto connection =
          std::make_shared<ServerConnection>(core, thread, index, fd, std::move(peer));
      connection->Begin();
      if (core->stopping) connection->Cut();
    };
    if (index == 0) {
      begin();
    } else {
      io_.At(index)->Post(std::move(begin));
    }
  }

  std::shared_ptr<ServerCore> core_;
  IoThreads& io_;
  std::shared_ptr<IoThread> thread_;
  std::unique_ptr<ReadyFd> fd_;
  TimerId retry_ = 0;
  size_t next_ = 0;
  bool full_ = false;
};

}  // namespace

struct HttpServer::Impl {
  explicit Impl(IoThreads& threads) : io(threads) {}
  IoThreads& io;
  std::shared_ptr<ServerCore> core;
  std::shared_ptr<Listener> listener;  // used on I/O thread 0
  uint16_t port = 0;
  std::string address;

  // Runs `action` on every connection, on its thread; `after` on each thread when done.
  void ForEach(void (ServerConnection::*action)(), Function<void()>* after_on_each) {
    for (size_t i = 0; i < io.size(); ++i) {
      io.At(i)->Post([core = core, listener = i == 0 ? listener : nullptr, i, action,
                      after_on_each] {
        if (listener) listener->Close();
        std::vector<ServerConnection*> all(core->by_thread[i].begin(), core->by_thread[i].end());
        for (ServerConnection* connection : all) (connection->*action)();
        if (after_on_each != nullptr) (*after_on_each)();
      });
    }
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Loop& loop, IoThreads& io, Handler& handler,
                                                      ServerOptions options) {
  auto impl = std::make_unique<Impl>(io);
  ASSIGN_OR_RETURN(Listening listening, options.bound_socket >= 0
                                            ? ListenAt(UniqueFd(options.bound_socket))
                                            : ListenOn(options.host, options.port));
  impl->core = std::make_shared<ServerCore>(loop, handler, std::move(options));
  if (impl->core->options.tls) {
    ASSIGN_OR_RETURN(impl->core->tls, MakeServerTls(*impl->core->options.tls));
  }
  impl->core->by_thread.resize(io.size());
  impl->port = listening.port;
  impl->address = std::move(listening.address);
  impl->listener = std::make_shared<Listener>(impl->core, io, std::move(listening.fd));
  io.At(0)->Post([listener = impl->listener] { listener->Begin(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  impl_->core->alive = false;
  impl_->core->stopping = true;
  impl_->core->loop.Cancel(impl_->core->stop_timer);
  // Waits, so that no connection refers to the loop or the handler any more; I/O threads never wait
  // for the loop.
  std::latch done(static_cast<ptrdiff_t>(impl_->io.size()));
  Function<void()> count_down = [&done] { done.count_down(); };
  impl_->ForEach(&ServerConnection::Cut, &count_down);
  done.wait();
}

uint16_t HttpServer::port() const { return impl_->port; }
const std::string& HttpServer::address() const { return impl_->address; }
size_t HttpServer::connections() const { return impl_->core->connections; }
size_t HttpServer::body_bytes() const { return impl_->core->body_bytes; }
size_t HttpServer::queued_bytes() const { return impl_->core->queued_bytes; }

void HttpServer::Stop(Duration grace, Task done) {
  CHECK(!impl_->core->stopping);
  std::shared_ptr<ServerCore> core = impl_->core;
  core->stopping = true;
  core->stop_done = std::move(done);
  impl_->ForEach(&ServerConnection::BeginStop, nullptr);
  core->stop_timer = core->loop.After(grace, [this, core] {
    if (core->alive) impl_->ForEach(&ServerConnection::Cut, nullptr);
  });
  if (core->connections == 0) core->loop.Post([core] { core->CheckStopped(); });
}

}  // namespace muster::net
