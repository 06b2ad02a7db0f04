#include "agent/runtime/signal_names.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster::agent {
namespace {

TEST(SignalNames, AreReadAsImagesAndPodsWriteThem) {
  const struct {
    const char* name;
    int number;
    const char* called;
  } rows[] = {{"SIGTERM", SIGTERM, "SIGTERM"},
              {"QUIT", SIGQUIT, "SIGQUIT"},
              {"3", SIGQUIT, "SIGQUIT"},
              {"SIGCLD", SIGCHLD, "SIGCHLD"},
              {"SIGIOT", SIGABRT, "SIGABRT"},
              {"SIGIO", SIGIO, "SIGPOLL"},
              {"SIGRTMIN", SIGRTMIN, "SIGRTMIN"},
              {"SIGRTMIN+3", SIGRTMIN + 3, "SIGRTMIN+3"},
              {"SIGRTMAX-2", SIGRTMAX - 2, "SIGRTMAX-2"},
              {"SIGRTMAX", SIGRTMAX, "SIGRTMAX"}};
  for (const auto& row : rows) {
    ASSERT_EQ(SignalNamed(row.name), row.number) << row.name;
    EXPECT_EQ(SignalName(row.number), row.called);
  }
  for (const char* none : {"", "SIG", "SIGNONE", "0", "-1", "4000", "SIGRTMIN-1", "SIGRTMIN+",
                           "SIGRTMIN+99", "SIGRTMAX+1"})
    EXPECT_EQ(SignalNamed(none), std::nullopt) << none;
  // All of them, back and forth.
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number)
    EXPECT_EQ(SignalNamed(SignalName(number)), number);
}

}  // namespace
}  // namespace muster::agent
