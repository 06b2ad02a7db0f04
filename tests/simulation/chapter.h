// tests/simulation/chapter.h
//
// Chapter: a part of a story about one kind of thing: what users do with it, what must hold of it
// after every change, and at rest. A story tells several at once, in one world.
//
// Life cycle: made before the world starts; Plan(), then the trouble; End() when all is repaired;
//             once Restless() has nothing any more, Judge().
// Thread:     the simulation's.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulation/counts.h"
#include "simulation/trouble.h"
#include "simulation/user_requests.h"
#include "simulation/world.h"

namespace muster::simulation {

// What all chapters of a story share.
struct Tale {
  World& world;
  Rng& rng;
  Counts& counts;
  Trouble& trouble;
};

class Chapter {
 public:
  // REQUIRES: what `tale` names outlives it.
  explicit Chapter(const Tale& tale)
      : world_(tale.world), rng_(tale.rng), counts_(tale.counts), trouble_(tale.trouble) {}
  virtual ~Chapter() = default;

  virtual void Plan() = 0;
  // What would never rest is brought to an end.
  virtual void End() {}
  virtual std::vector<std::string> Restless() const = 0;
  virtual void Judge() {}

 protected:
  // What the story does; it is counted.
  void Tell(const std::string& story, const std::string& about) {
    counts_.Add("story: " + story);
    world_.Tell(story + " " + about);
  }
  template <size_t N>
  std::string_view OneOf(const std::string_view (&choices)[N]) {
    return choices[rng_.Below(N)];
  }
  void Delete(const client::Target& target, const client::DeleteOptions& options = {}) {
    world_.user().Delete(target, options, [](Result<json::Value>) {});
  }
  static bool IsGoing(const json::Value& object) {
    return object["metadata"].Has("deletionTimestamp");
  }
  static std::string NameOf(const json::Value& object) { return client::KeyOf(object).ToString(); }

  World& world_;
  Rng& rng_;
  Counts& counts_;
  Trouble& trouble_;
};

}  // namespace muster::simulation
