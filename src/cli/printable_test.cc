#include "cli/printable.h"

#include <gtest/gtest.h>

#include "cli/table_printer.h"
#include "json/parse.h"

namespace muster::cli {
namespace {

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(Printable("plain Ünïcode 模型 🙂"), "plain Ünïcode 模型 🙂");
  EXPECT_EQ(Printable("a\nb\tc\r"), "a\\nb\\tc\\x0d");
  EXPECT_EQ(PrintableLines("a\nb\tc\x1b[2J\r"), "a\nb\tc\\x1b[2J\\x0d");
  EXPECT_EQ(Printable("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(Printable(std::string_view("\0\xc2\x9b"
                                       "31m\xc2",
                                       7)),
            "\\x00\\x9b31m\xc2");
}

TEST(Printable, TablesAre) {
  EXPECT_EQ(FormatColumns({{"NAME", "AGE"}, {"a\x1b[2J\nb", "1d"}}),
            "NAME          AGE\na\\x1b[2J\\nb   1d\n");
  Console console{Console::Capture{}};
  TablePrinter printer(console, {});
  printer.Add(*json::Parse(R"({"columnDefinitions": [{"name": "Name"}],
                               "rows": [{"cells": ["a\u001bb\nc"]}]})"));
  EXPECT_EQ(console.out, "NAME\na\\x1bb\\nc\n");
}

}  // namespace
}  // namespace muster::cli
