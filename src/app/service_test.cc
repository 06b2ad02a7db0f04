#include "app/service.h"

#include <gtest/gtest.h>

namespace muster::app {
namespace {

TEST(Service, WordsReachMusterAsTheyAre) {
  EXPECT_EQ(QuoteForSystemd("plain"), "\"plain\"");
  EXPECT_EQ(QuoteForSystemd("a b"), "\"a b\"");
  EXPECT_EQ(QuoteForSystemd("50% of $HOME"), "\"50%% of $$HOME\"");
  EXPECT_EQ(QuoteForSystemd("say \"\\\""), "\"say \\\"\\\\\\\"\"");
}

TEST(Service, PodsSurviveAndHaveGroups) {
  const std::string text =
      UnitText({"/opt/muster/lib/muster", {"--listen", "0.0.0.0:6443"}, "/srv/a b", true});
  EXPECT_NE(text.find("ExecStart=\"/opt/muster/lib/muster\" up \"--listen\" \"0.0.0.0:6443\" "
                      "--data-dir \"/srv/a b\"\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nKillMode=process\n"), std::string::npos);
  EXPECT_NE(text.find("\nDelegate=yes\n"), std::string::npos);
  EXPECT_NE(text.find("\nWantedBy=multi-user.target\n"), std::string::npos);
  EXPECT_NE(UnitText({"/m", {}, "/d", false}).find("\nWantedBy=default.target\n"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::app
