#include "store/compactor.h"

#include <gtest/gtest.h>

#include "loop/sim_loop.h"
#include "store/memory_store.h"
#include "store/store_test_support.h"

namespace muster::store {
namespace {

TEST(Compactor, KeepsAtLeastOnePeriodOfThePast) {
  SimLoop loop;
  const std::unique_ptr<Store> store = OpenMemoryStore(loop);
  const auto write = [&](int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(store->Write(MakePut("/a", "v"), {}));
    loop.RunFor(milliseconds(1));
  };
  {
    const Compactor compactor(loop, *store);
    write(10);
    loop.RunFor(kCompactionPeriod);
    EXPECT_EQ(store->CompactedRevision(), 0);
    write(5);
    loop.RunFor(kCompactionPeriod);
    EXPECT_EQ(store->CompactedRevision(), 10);
    loop.RunFor(10 * kCompactionPeriod);
    EXPECT_EQ(store->CompactedRevision(), 15);
  }
  write(1);
  loop.RunFor(10 * kCompactionPeriod);
  EXPECT_EQ(store->CompactedRevision(), 15);
  EXPECT_FALSE(loop.NextDue().has_value());
}

TEST(Compactor, ForgetsByPeriodsWhateverTheClockIsSetTo) {
  SimLoop loop;
  const std::unique_ptr<Store> store = OpenMemoryStore(loop);
  const Compactor compactor(loop, *store);
  Revision written = 0;
  for (const Duration jump : {Duration(hours(1)), Duration(hours(-1)), Duration(hours(48))}) {
    ASSERT_TRUE(store->Write(MakePut("/a", "v"), {}));
    loop.RunFor(milliseconds(1));
    loop.JumpClock(jump);
    loop.RunFor(kCompactionPeriod);
    EXPECT_EQ(store->CompactedRevision(), written) << "one period of the past stays";
    loop.RunFor(kCompactionPeriod);
    EXPECT_EQ(store->CompactedRevision(), ++written);
  }
}

}  // namespace
}  // namespace muster::store
