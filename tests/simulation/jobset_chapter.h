// tests/simulation/jobset_chapter.h
//
// JobSetChapter: JobSets whose Jobs end well or badly, that begin anew, start in order, are gangs,
// are suspended, resumed and deleted, and lose Jobs and pods.
//
//   attempts   no Job of a former attempt is made; with BlockingRecreate none beside one of those;
//              attempts that count stay within maxRestarts
//   end        no Job is made after it
//   rest       ended; no Job runs, and status counts what there is
//
// Thread: the simulation's.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulation/chapter.h"

namespace muster::simulation {

class JobSetChapter final : public Chapter {
 public:
  explicit JobSetChapter(const Tale& tale);
  void Plan() override;
  void End() override;
  std::vector<std::string> Restless() const override;
  void Judge() override;

 private:
  struct JobSet {
    json::Value object;
    Time began_anew{}, ended{};
    bool has_ended = false;
  };

  void Make(const std::string& name);
  std::string RandomPolicies(bool two);
  std::string RandomJob(const std::string& name, const std::string& more);
  void Change();
  void SetSuspend(const std::string& name, bool suspend);
  void DeleteJobSet(const std::string& name);
  void DeleteAJob();
  void DeleteOrphan(const json::Value& job);
  void OnJobSet(const json::Value& object, bool deleted);
  void OnJob(const json::Value& object, bool deleted);
  void CheckNewJob(const json::Value& job, const JobSet& job_set);

  std::map<std::string, JobSet> job_sets_;   // by uid
  std::map<std::string, json::Value> jobs_;  // by uid; those of JobSets, also orphaned ones
  std::vector<std::string> names_;
  bool ends_ = false;
};

}  // namespace muster::simulation
