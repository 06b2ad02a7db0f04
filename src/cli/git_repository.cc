#include "cli/git_repository.h"

#include <filesystem>
#include <system_error>

#include "base/strings.h"
#include "cli/run_program.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

// No question is asked of a terminal, and no repository around this process meddles.
const std::vector<std::string> kEnvironment = {"GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_DIR",
                                               "GIT_WORK_TREE", "GIT_INDEX_FILE"};

}  // namespace

Result<std::string> GitRepository::Git(std::vector<std::string> words) const {
  words.insert(words.begin(), {"git", "-C", folder_});
  ASSIGN_OR_RETURN(const ProgramEnd end, RunProgram(words, kEnvironment));
  const std::string said(Trim(end.output));
  if (end.code == 0) return said;
  return Error(Reason::kInvalid, "git {}: {}", words[3],
               said.empty() ? fmt::format("exit code {}", end.code) : said);
}

Result<GitRepository> GitRepository::Open(const std::string& location, const std::string& branch,
                                          const std::string& folder) {
  if (location.empty() || location.starts_with('-') || branch.starts_with('-'))
    return Error(Reason::kInvalid, "{:?}: expected a repository's URL or path, and a branch",
                 location.empty() ? location : location + " " + branch);
  std::error_code error;
  std::string from = location;
  if (fs::exists(location, error)) from = fs::absolute(location, error).string();
  fs::create_directories(folder, error);
  if (error) return Error(Reason::kInvalid, "{}: {}", folder, error.message());
  fs::permissions(folder, fs::perms::owner_all, error);
  GitRepository repository(std::move(from), branch.empty() ? "HEAD" : branch, folder);
  RETURN_IF_ERROR([&]() -> Status {
    ASSIGN_OR_RETURN(const std::string said, repository.Git({"init", "-q"}));
    return Status::Ok();
  }());
  return repository;
}

Result<GitRepository::Commit> GitRepository::Update() {
  ASSIGN_OR_RETURN(const std::string fetched,
                   Git({"fetch", "-q", "--depth=1", "--no-tags", location_, branch_}));
  ASSIGN_OR_RETURN(const std::string reset, Git({"reset", "-q", "--hard", "FETCH_HEAD"}));
  ASSIGN_OR_RETURN(const std::string clean, Git({"clean", "-qffdx"}));
  ASSIGN_OR_RETURN(const std::string line, Git({"log", "-1", "--format=%H %s"}));
  const size_t blank = line.find(' ');
  return Commit{line.substr(0, blank),
                blank == std::string::npos ? std::string() : line.substr(blank + 1)};
}

Status GitRepository::PushNote(const Commit& commit, const std::string& text) {
  const std::string ref(kNotesRef);
  Result<std::string> pushed = Error(Reason::kInvalid, "");
  // Somebody else may push a note at the same time.
  for (int i = 0; i < 3 && !pushed; ++i) {
    // There are none yet: that is fine.
    (void)Git({"fetch", "-q", location_, fmt::format("+{}:{}", ref, ref)});
    ASSIGN_OR_RETURN(const std::string noted,
                     Git({"-c", "user.name=muster", "-c", "user.email=muster@localhost", "notes",
                          "--ref", ref, "add", "-f", "-m", text, commit.hash}));
    pushed = Git({"push", "-q", location_, ref});
  }
  return pushed ? Status::Ok() : pushed.error();
}

}  // namespace muster::cli
