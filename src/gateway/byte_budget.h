// src/gateway/byte_budget.h
//
// ByteBudget: how much the gateway keeps of answers, all connections together. What is collected
// for graphs has a Share; what waits for slow readers is counted by the server, which cuts those
// that stall where it is too much, and comes in through `elsewhere`.
//
// Thread: used() and refused() on any, if `elsewhere` may be called there; Shares on the gateway's.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace muster::gateway {

// What one slow reader may have waiting, before its pod has to wait: so much while half of the
// budget is free, then so little.
inline constexpr size_t kMaxAnswerBacklogBytes = 512 * 1024;
inline constexpr size_t kMinAnswerBacklogBytes = 64 * 1024;

class ByteBudget {
 public:
  explicit ByteBudget(size_t most, std::function<size_t()> elsewhere = {})
      : most_(most), elsewhere_(std::move(elsewhere)) {}

  size_t most() const { return most_; }
  size_t used() const { return own_ + (elsewhere_ ? elsewhere_() : 0); }
  uint64_t refused() const { return refused_; }
  size_t BacklogOfEach() const {
    return used() < most_ / 2 ? kMaxAnswerBacklogBytes : kMinAnswerBacklogBytes;
  }
  // For `more` bytes; a refusal is counted.
  bool HasRoomFor(size_t more) {
    const bool has = used() + more <= most_;
    if (!has) ++refused_;
    return has;
  }

  // What one request has of it.
  class Share {
   public:
    explicit Share(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { Release(); }

    // False, and nothing is changed, where there is no room for it.
    bool Grow(size_t more) {
      if (!budget_->HasRoomFor(more)) return false;
      budget_->own_ += more;
      bytes_ += more;
      return true;
    }
    void Release() { budget_->own_ -= std::exchange(bytes_, 0); }

   private:
    const std::shared_ptr<ByteBudget> budget_;
    size_t bytes_ = 0;
  };

 private:
  const size_t most_;
  const std::function<size_t()> elsewhere_;
  std::atomic<size_t> own_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace muster::gateway
