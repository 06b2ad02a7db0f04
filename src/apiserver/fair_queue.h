// src/apiserver/fair_queue.h
//
// FairQueue: things that wait, those of each user in the order in which they came; the users take
// turns, so that who brings many does not keep others out.
//
// Thread:     one at a time.
// Invariants: at most `most` things wait in all, and `most_of_user` of one user.

#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace muster::apiserver {

template <class Thing>
class FairQueue {
 public:
  FairQueue(size_t most, size_t most_of_user) : most_(most), most_of_user_(most_of_user) {}

  bool empty() const { return order_.empty(); }
  size_t size() const { return size_; }

  // False, and `thing` is dropped, when too many wait.
  bool Push(const std::string& user, Thing thing) {
    if (size_ >= most_) return false;
    std::deque<Thing>& queue = queues_[user];
    if (queue.size() >= most_of_user_) return false;
    if (queue.empty()) order_.push_back(user);
    queue.push_back(std::move(thing));
    ++size_;
    return true;
  }

  // REQUIRES: not empty.
  Thing Pop() {
    const std::string user = std::move(order_.front());
    order_.pop_front();
    const auto queue = queues_.find(user);
    Thing thing = std::move(queue->second.front());
    queue->second.pop_front();
    --size_;
    if (queue->second.empty()) {
      queues_.erase(queue);
    } else {
      order_.push_back(user);
    }
    return thing;
  }

 private:
  const size_t most_;
  const size_t most_of_user_;
  std::map<std::string, std::deque<Thing>> queues_;  // by user; none is empty
  std::deque<std::string> order_;                    // of the users' next turns
  size_t size_ = 0;
};

}  // namespace muster::apiserver
