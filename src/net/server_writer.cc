// The loop's side of an exchange: every call becomes a task on the connection's I/O thread.

#include <utility>

#include "base/check.h"
#include "net/raw_stream.h"
#include "net/server_connection.h"

namespace muster::net {
namespace {

class ServerWriter final : public ResponseWriter {
 public:
  explicit ServerWriter(ExchangePtr exchange) : exchange_(std::move(exchange)) {}

  ~ServerWriter() override {
    if (state_ == State::kFresh) {
      Response response;
      response.status = 500;
      response.headers.Add("Content-Type", "text/plain; charset=utf-8");
      response.body = "500 Internal Server Error: the request was dropped without an answer\n";
      Send(std::move(response));
    } else if (state_ == State::kStreaming) {
      Command([](ServerConnection& connection, const ExchangePtr& exchange) {
        connection.CutStream(exchange);
      });
    }
  }

  void Send(Response response) override {
    CHECK(state_ == State::kFresh);
    state_ = State::kDone;
    exchange_->on_gone = nullptr;
    Command([response = std::move(response)](ServerConnection& connection,
                                             const ExchangePtr& exchange) mutable {
      connection.Answer(exchange, std::move(response));
    });
  }

  void StartStream(int status, Headers headers) override {
    CHECK(state_ == State::kFresh);
    state_ = State::kStreaming;
    Command([status, headers = std::move(headers)](ServerConnection& connection,
                                                   const ExchangePtr& exchange) {
      connection.StartStream(exchange, status, headers);
    });
  }

  void Write(std::shared_ptr<const std::string> bytes) override {
    CHECK(state_ != State::kFresh);
    if (state_ != State::kStreaming || bytes->empty()) return;
    exchange_->buffered += bytes->size();
    Command([bytes = std::move(bytes)](ServerConnection& connection,
                                       const ExchangePtr& exchange) mutable {
      connection.StreamWrite(exchange, std::move(bytes));
    });
  }

  void End() override {
    CHECK(state_ != State::kFresh);
    if (state_ != State::kStreaming) return;
    state_ = State::kDone;
    exchange_->on_gone = nullptr;
    Command([](ServerConnection& connection, const ExchangePtr& exchange) {
      connection.EndStream(exchange);
    });
  }

  void CutWith(std::shared_ptr<const std::string> last) override {
    CHECK(state_ != State::kFresh);
    if (state_ != State::kStreaming) return;
    state_ = State::kDone;
    exchange_->on_gone = nullptr;
    Command([last = std::move(last)](ServerConnection& connection, const ExchangePtr& exchange) {
      connection.CutStreamWith(exchange, *last);
    });
  }

  size_t BufferedBytes() const override { return exchange_->buffered; }

  std::unique_ptr<ByteStream> Upgrade(Headers headers) override {
    CHECK(state_ == State::kFresh);
    state_ = State::kDone;
    exchange_->on_gone = nullptr;
    auto raw = std::make_shared<RawStreamState>(exchange_->core->loop, exchange_->thread);
    exchange_->thread->Post([exchange = exchange_, headers = std::move(headers), raw] {
      if (auto connection = exchange->connection.lock()) {
        connection->Upgrade(exchange, headers, raw);
      } else if (exchange->core->connections > 0 || !exchange->core->stopping) {
        raw->PostClosed();  // once the server is gone, the loop may be too
      }
    });
    return MakeRawStream(std::move(raw));
  }

  void OnPeerGone(Task task) override {
    if (state_ == State::kDone) return;
    if (exchange_->gone) {
      exchange_->core->loop.Post(std::move(task));
    } else {
      exchange_->on_gone = std::move(task);
    }
  }

 private:
  enum class State : uint8_t { kFresh, kStreaming, kDone };

  template <class F>
  void Command(F command) {
    exchange_->thread->Post([exchange = exchange_, command = std::move(command)]() mutable {
      if (auto connection = exchange->connection.lock()) command(*connection, exchange);
    });
  }

  ExchangePtr exchange_;
  State state_ = State::kFresh;
};

}  // namespace

ResponseWriterPtr MakeServerWriter(ExchangePtr exchange) {
  return std::make_shared<ServerWriter>(std::move(exchange));
}

}  // namespace muster::net
