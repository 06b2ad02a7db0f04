// src/schema/training_kinds.h
//
// The kinds of training jobs (kubeflow.org) that are made of replicas by role: what tells them
// apart, for all who treat them alike (defaults, validation, controller, commands). Contract:
// kubeflow/training-operator release-1.9, pkg/apis/kubeflow.org/v1.
//
// Thread: any (constants).

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "json/value.h"

namespace muster::schema {

struct TrainingRole {
  std::string_view type;  // "Worker"
  bool single = false;    // exactly one
  bool leads = false;     // its end is the job's; at most one role of a job does
  bool required = false;
};

struct TrainingKind {
  std::string_view kind;       // "PyTorchJob"
  std::string_view plural;     // "pytorchjobs"
  std::string_view specs;      // spec.pytorchReplicaSpecs
  std::string_view container;  // the one that trains; of an MPIJob the first, if none is so called
  std::string_view port_name;  // of its port by which the ranks meet
  int64_t port = 0;            // where the container names none
  std::string_view restart_policy;  // where a role names none
  std::span<const TrainingRole> roles;
  bool any_container = false;  // may be called anything

  // "worker" is the Worker; null if there is no such role.
  const TrainingRole* FindRole(std::string_view type) const;
};

std::span<const TrainingKind> TrainingKinds();
// "PyTorchJob"; null if it is none.
const TrainingKind* FindTrainingKind(std::string_view kind);
// spec.<kind>ReplicaSpecs of a job of any of the kinds; null if it has none.
const json::Value& ReplicaSpecsOf(const json::Value& job);

}  // namespace muster::schema
