// src/apiserver/health.h
//
// Health: /healthz, /livez, /readyz, each a list of named checks; `?verbose` shows them one by one,
// `?exclude=name` leaves one out, /readyz/NAME asks one alone. Why one fails is said to members of
// system:masters; to others it is withheld, as upstream does to everybody.
//
// Life cycle: a member of the server; checks are added before it serves.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/authentication.h"
#include "apiserver/call.h"
#include "base/status.h"

namespace muster::apiserver {

class Health {
 public:
  using Check = std::function<Status()>;
  void Add(std::string name, Check check, bool also_live);

  // Answers if the path is one of the above; false otherwise.
  bool Handle(Call& call, const User& user) const;

 private:
  struct Named {
    std::string name;
    Check check;
    bool also_live;  // part of /livez and /healthz, not only of /readyz
  };
  std::vector<Named> checks_;
};

}  // namespace muster::apiserver
