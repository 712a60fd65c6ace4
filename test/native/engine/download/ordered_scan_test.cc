#include "download/ordered_scan.h"

#include <gtest/gtest.h>

#include <deque>

#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr size_t kPacketBytes = 60'000;

std::vector<StoredPacket> packetsOf(uint64_t bytes) {
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i * kPacketBytes < bytes; i++) {
    packets.push_back(numberedPacket(1 + i, i, kPacketBytes));
  }
  return packets;
}

SlicePlan planOf(const StoredStreams& store, uint64_t sliceBytes) {
  std::vector<IndexedStream> streams;
  for (const auto& paths : store.paths()) {
    IndexedStream stream;
    for (const std::string& path : paths) {
      stream.push_back(std::make_shared<IndexedSegment>(path, *readSegmentIndex(path)));
    }
    streams.push_back(std::move(stream));
  }
  return planSlices(streams, {0, INT64_MAX}, sliceBytes);
}

// A writer has one part in flight and one ready while it waits for the next.
TEST(OrderedScan, GoesOnWhileTheConsumerHoldsTwoPartsAndLaterSlicesAllThatTheyMay) {
  StoredStreams store;
  const std::vector<StoredPacket> packets = packetsOf(30 * kMebibyte);
  store.addStream(packets);
  auto context = std::make_unique<ScanContext>(PacketTransform{}, int64_t{0}, INT64_MAX);
  PlannedSlices planned;
  planned.first = std::make_shared<const SlicePlan>(planOf(store, 6 * kMebibyte));
  ASSERT_GE(planned.first->slices.size(), 4u);
  const auto slabs = std::make_shared<BufferPool>();
  // One thread alternates between the slices, and its callback is the consumer: the first parts are
  // returned at once while the other slices run ahead, and after that two are always held.
  constexpr size_t kGivenBackAtOnce = 2;
  auto workers = std::make_unique<WorkerPool>(1);
  std::shared_ptr<OrderedScan> scan;
  std::deque<SlabPtr> held;
  size_t taken = 0;
  size_t delivered = 0;
  const auto consume = [&] {
    while (std::optional<PacketBatch> batch = scan->take()) {
      taken++;
      delivered += batch->packets;
      held.push_back(std::move(batch->slab));
      const size_t most = taken <= kGivenBackAtOnce ? 0 : 2;
      for (; held.size() > most; held.pop_front()) scan->give(std::move(held.front()));
    }
  };
  OrderedScanOptions options;
  options.slabs = 8;
  options.slicesAtOnce = 4;
  scan = std::make_shared<OrderedScan>(std::move(context), std::move(planned), options,
                                       workers->makeQueue(), slabs, consume);
  scan->start();
  workers.reset();  // ends when all threads are idle
  EXPECT_TRUE(scan->isFinished()) << "it waits after " << taken << " parts";
  EXPECT_EQ(delivered, packets.size());
  scan->cancel();
  for (SlabPtr& slab : held) scan->give(std::move(slab));
}

}  // namespace
}  // namespace capfleet::test
