#include "simulator/html_report.h"

#include <gtest/gtest.h>

#include <stack>

#include "simulator/trace_reader.h"

namespace muster::simulator {
namespace {

Workload SmallWorkload(size_t jobs) {
  std::string text = "timestamp,duration,num_gpus\n";
  for (size_t i = 0; i < jobs; ++i)
    text +=
        "2017-10-09 07:0" + std::to_string(i % 10) + ":00,600," + std::to_string(1 + i % 8) + "\n";
  text += "2017-10-09 07:01:00,600,64\n";
  return {*NodesOfShape("2x8"), *ReadJobs("f", text)};
}

std::string Report(const Workload& workload) {
  const Outcome outcome = Simulate(workload, Policy::kMuster);
  return ToHtml(workload, outcome, Summarise(workload, outcome), "a <trace> & more");
}

// Every element that is opened is closed, in order; attributes are quoted. Returns what is wrong.
std::string FaultIn(const std::string& html) {
  std::stack<std::string> open;
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at)) {
    const size_t end = html.find('>', at);
    if (end == html.npos) return "no > behind " + html.substr(at, 40);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name = tag.substr(tag.starts_with('/') ? 1 : 0, tag.find(' '));
    if (tag.starts_with('/')) {
      if (open.empty() || open.top() != name) return "closed but not open: " + name;
      open.pop();
    } else {
      open.push(name);
    }
  }
  return open.empty() ? "" : "not closed: " + open.top();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(HtmlReport, IsOneWellFormedPageOfItsOwn) {
  const std::string html = Report(SmallWorkload(40));
  EXPECT_EQ(FaultIn(html), "");
  EXPECT_EQ(Count(html, "<svg"), 3u);
  EXPECT_EQ(Count(html, "<script"), 0u);
  EXPECT_EQ(Count(html, "http"), 0u) << "nothing from elsewhere";
  EXPECT_EQ(Count(html, "nan"), 0u);
  EXPECT_EQ(Count(html, "a &lt;trace&gt; &amp; more"), 2u);
  EXPECT_EQ(Count(html, "Never placed"), 1u);
  EXPECT_EQ(html, Report(SmallWorkload(40))) << "the same input, another page";
  // One area and one line of 100 steps each, and the queue.
  EXPECT_EQ(Count(html, "fill=\"var(--used)\"/>"), 1u);
  EXPECT_EQ(Count(html, "fill=\"var(--queue)\"/>"), 1u);
  EXPECT_EQ(Count(html, ", mean: "), 5u) << "sizes 1, 2, 3-4, 5-8, 33-64";
}

TEST(HtmlReport, ShowsTheJobsThatWaitedLongest) {
  const std::string html = Report(SmallWorkload(kMaxJobsInReport + 50));
  EXPECT_NE(html.find("the 200 of 250 that waited longest"), std::string::npos);
  EXPECT_LT(html.size(), 200'000u);
}

TEST(HtmlReport, NothingHappensInAnEmptyTime) {
  Workload workload = SmallWorkload(0);  // the one job never fits
  EXPECT_EQ(FaultIn(Report(workload)), "");
  EXPECT_EQ(Count(Report(workload), "nan"), 0u);
}

}  // namespace
}  // namespace muster::simulator
