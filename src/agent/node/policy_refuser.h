// src/agent/node/policy_refuser.h
//
// PolicyRefuser: network policies on a node that cannot enforce them, because its pods have no
// network of their own. A pod that a policy selects is refused; one that runs already when it is
// selected goes on, with a Warning event about it and one about the node.
//
// Life cycle: made before the informers are started; Start() once pods may be asked for; destroy to
//             stop.
// Thread:     the loop thread.
// Invariants: no pod starts before the policies are known.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/pod_workers/policy_guard.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/lifetime.h"

namespace muster::agent {

class PolicyRefuser : public PolicyGuard {
 public:
  struct Node {
    std::string name;
    std::function<json::Array()> pods;          // that are here
    std::function<void()> on_policies_changed;  // Look() may answer otherwise
  };

  PolicyRefuser(client::InformerSet& informers, client::Informer& pods_of_node,
                client::EventRecorder& events, Node node);

  void Start();
  Answer Look(const json::Value& pod, const std::string& address) override;

 private:
  void LookAtAll();
  // The name of a policy that selects the pod; "" if there is none.
  std::string SelectedBy(const json::Value& pod) const;
  void WarnOf(const json::Value& pod);

  client::Informer& policies_;
  client::Informer& pods_of_node_;
  client::EventRecorder& events_;
  Node node_;
  bool started_ = false;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
