// src/apiserver/fake_writer.h
//
// FakeWriter: a ResponseWriter that keeps what it was told, for tests. A BodySource is pulled at
// once.
//
// Thread: the loop thread.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/task.h"
#include "net/http.h"

namespace muster::apiserver {

class FakeWriter : public net::ResponseWriter {
 public:
  void Send(net::Response response) override {
    status = response.status;
    headers = std::move(response.headers);
    body = std::move(response.body);
    if (!response.value.IsNull()) values.push_back(std::move(response.value));
    if (response.source != nullptr) {
      while (response.source->Next(piece_bytes, body)) {
      }
    }
    ended = true;
  }
  void StartStream(int code, net::Headers head) override {
    status = code;
    headers = std::move(head);
    streaming = true;
  }
  void Write(std::shared_ptr<const std::string> bytes) override {
    if (gone) return;
    body += *bytes;
    ++writes;
  }
  void WriteValue(json::Value value, size_t) override {
    if (!gone) values.push_back(std::move(value));
  }
  bool TakesValues() const override { return takes_values; }
  void End() override { ended = true; }
  void CutWith(std::shared_ptr<const std::string> last) override {
    cut = true;
    net::ResponseWriter::CutWith(std::move(last));
  }
  size_t BufferedBytes() const override { return buffered_bytes; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers head) override {
    status = 101;
    headers = std::move(head);
    return std::move(upgrade);
  }
  void OnPeerGone(Task task) override { on_gone_ = std::move(task); }

  void LosePeer() {
    gone = true;
    if (on_gone_) std::exchange(on_gone_, nullptr)();
  }

  int status = 0;  // 0: not answered yet
  net::Headers headers;
  std::string body;
  bool takes_values = false;        // as a caller in this process
  std::vector<json::Value> values;  // what came as trees
  bool streaming = false, ended = false, cut = false, gone = false;
  int writes = 0;
  size_t buffered_bytes = 0;                 // what BufferedBytes() says
  size_t piece_bytes = 16384;                // asked of a BodySource at a time
  std::unique_ptr<net::ByteStream> upgrade;  // what Upgrade() gives

 private:
  Task on_gone_;
};

}  // namespace muster::apiserver
