#include "agent/kubelet_server/log_stream.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <memory>

#include "base/log.h"

namespace muster::agent {
namespace {

class LogStream : public std::enable_shared_from_this<LogStream> {
 public:
  LogStream(AsioLoop& loop, Pool& pool, LogStreamRequest request, net::ResponseWriterPtr writer)
      : loop_(loop), pool_(pool), request_(std::move(request)), writer_(std::move(writer)) {}

  void Start() {
    writer_->OnPeerGone([self = weak_from_this()] {
      if (const auto stream = self.lock()) stream->End();
    });
    if (request_.options.follow) Watch();
    self_ = shared_from_this();
    ReadMore();
  }

 private:
  struct Piece {
    Status status;
    std::string text;
    bool more = false;
  };

  void Watch() {
    inotify_.Reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    const std::string dir = request_.path.substr(0, request_.path.find_last_of('/'));
    if (!inotify_.valid() ||
        inotify_add_watch(inotify_.get(), dir.c_str(), IN_MODIFY | IN_CREATE | IN_MOVE) < 0) {
      return;  // the timer alone finds new lines, a little later
    }
    watch_ = loop_.WatchReadable(inotify_.get(), [this] {
      char events[4096];
      while (read(inotify_.get(), events, sizeof events) > 0) {
      }
      ReadMore();
    });
  }

  void ReadMore() {
    if (ended_) return;
    if (reading_) {
      read_again_ = true;
      return;
    }
    reading_ = true;
    read_again_ = false;
    // Before the read: what is written until the end is then surely seen by it.
    was_running_ = request_.options.follow && request_.still_running();
    auto piece = std::make_shared<Piece>();
    pool_.Run([self = self_, piece] { self->ReadOnPool(*piece); }, loop_,
              [self = self_, piece] { self->OnRead(*piece); });
  }

  void ReadOnPool(Piece& piece) {
    if (reader_ == nullptr) {
      Result<LogReader> opened = LogReader::Open(request_.path, request_.options);
      if (!opened) {
        piece.status = opened.error();
        return;
      }
      reader_ = std::make_unique<LogReader>(std::move(*opened));
    }
    Result<bool> more = reader_->Read(piece.text);
    piece.more = more && *more;
    if (!more) piece.status = more.error();
  }

  void OnRead(Piece& piece) {
    reading_ = false;
    if (ended_) return;
    if (!started_) {
      started_ = true;
      net::Headers headers;
      headers.Set("Content-Type", "text/plain");
      writer_->StartStream(200, std::move(headers));
    }
    if (!piece.text.empty())
      writer_->Write(std::make_shared<const std::string>(std::move(piece.text)));
    if (!piece.status.ok()) {
      LOG_WARN("agent: read log {}: {}", request_.path, piece.status.message());
      return Finish();
    }
    if (reader_->LimitReached()) return Finish();
    if (piece.more || read_again_)
      return writer_->BufferedBytes() > kMaxLogBacklogBytes ? Wait() : ReadMore();
    if (!was_running_) return Finish();
    Wait();
  }

  void Wait() {
    if (timer_ != 0) return;
    timer_ = loop_.After(kLogPollPeriod, [this] {
      timer_ = 0;
      ReadMore();
    });
  }

  void Finish() {
    writer_->End();
    End();
  }

  void End() {
    if (ended_) return;
    ended_ = true;
    loop_.Cancel(timer_);
    // Not under the feet of the callback that brought us here.
    loop_.Post([self = std::move(self_)] { self->watch_.reset(); });
  }

  AsioLoop& loop_;
  Pool& pool_;
  LogStreamRequest request_;
  net::ResponseWriterPtr writer_;
  std::shared_ptr<LogStream> self_;
  std::unique_ptr<LogReader> reader_;
  UniqueFd inotify_;
  std::unique_ptr<FdWatch> watch_;
  TimerId timer_ = 0;
  bool reading_ = false, read_again_ = false, started_ = false, ended_ = false,
       was_running_ = false;
};

}  // namespace

void StartLogStream(AsioLoop& loop, Pool& pool, LogStreamRequest request,
                    net::ResponseWriterPtr writer) {
  std::make_shared<LogStream>(loop, pool, std::move(request), std::move(writer))->Start();
}

}  // namespace muster::agent
