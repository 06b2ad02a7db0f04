// src/cli/git_repository.h
//
// GitRepository: one branch of a Git repository, checked out where nobody else looks, by `git`,
// the program: so whatever the user has set up for it (keys, helpers, proxies) holds.
//
// Life cycle: Open() makes or finds the folder; Update() as often as wanted.
// Thread:     blocks the calling one.
// Errors:     Invalid, with git's own words.

#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace muster::cli {

// The notes in which results are pushed: `git log --notes=muster`.
inline constexpr const char* kNotesRef = "refs/notes/muster";

class GitRepository {
 public:
  struct Commit {
    std::string hash, subject;
  };

  // `location`: a URL or a path. `branch` "": the repository's own default. `folder`: of this
  // repository and branch alone.
  static Result<GitRepository> Open(const std::string& location, const std::string& branch,
                                    const std::string& folder);
  // The newest commit of the branch is what the folder holds then, and nothing else.
  Result<Commit> Update();
  const std::string& folder() const { return folder_; }
  // Pushes the note of the commit, in place of one that is there.
  Status PushNote(const Commit& commit, const std::string& text);

 private:
  GitRepository(std::string location, std::string branch, std::string folder)
      : location_(std::move(location)), branch_(std::move(branch)), folder_(std::move(folder)) {}
  Result<std::string> Git(std::vector<std::string> words) const;

  std::string location_, branch_, folder_;
};

}  // namespace muster::cli
