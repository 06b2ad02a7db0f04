// src/controllers/jobset/jobset_jobs.h
//
// What a JobSet is made of: Jobs, and the headless Service by which their pods find each other.
// Source: kubernetes-sigs/jobset pkg/controllers and, for what its pod webhooks do, pkg/webhooks.
//
// Exclusive placement (annotation alpha.jobset.sigs.k8s.io/exclusive-topology: each Job has a
// domain for itself) is written into the template of the Job as affinity and anti-affinity of all
// its pods. Upstream places the first pod so and lets the others follow it by a node selector,
// which saves its scheduler work; where the pods come to lie is the same.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>

#include "controllers/jobset/jobset_facts.h"
#include "json/value.h"

namespace muster::controllers {

json::Value MakeJob(const JobSetFacts& job_set, const ReplicatedJob& replicated_job, int64_t index);
json::Value MakeHeadlessService(const JobSetFacts& job_set);
// A Service of the subdomain's name: whether the host names of all pods resolve through it.
bool GivesHostNames(const json::Value& service, const JobSetFacts& job_set);
// Of a gang: the pods that run at a time.
// `done`: its pods that have succeeded and are gone; nobody waits for them.
json::Value MakeGang(const JobSetFacts& job_set, int64_t done);

// The template of a Job that is resumed: what the JobSet's own may have changed while it was
// suspended (labels, annotations, node selector, tolerations, scheduling gates) is added.
json::Value WithDirectives(json::Value pod_template, const json::Value& wanted);

}  // namespace muster::controllers
