#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "support/seed.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr int64_t kStartNs = 1'700'000'000'000'000'000;

/// How many files the process may open, until this ends.
class OpenFileLimit {
 public:
  explicit OpenFileLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{files, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~OpenFileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// The same streams many times, under different names of the same files.
std::vector<StreamSegments> renamed(const StoredStreams& store, const TempDirectory& into,
                                    size_t times) {
  std::vector<StreamSegments> streams;
  for (size_t time = 0; time < times; time++) {
    for (const StreamSegments& stream : store.streams()) {
      StreamSegments& copy = streams.emplace_back(stream);
      copy.folder = into.folder(std::to_string(streams.size()));
      for (const SegmentEntry& segment : stream.segments) {
        const std::filesystem::path path = copy.pathOf(segment);
        std::filesystem::create_directories(path.parent_path());
        for (const char* ending : {".pcap", ".idx"}) {
          std::filesystem::create_hard_link(stream.pathOf(segment) + ending,
                                            copy.pathOf(segment) + ending);
        }
      }
    }
  }
  return streams;
}

TEST(ManyInputs, ThousandsThatOverlapAreMergedWithFewOpenFiles) {
  constexpr size_t kStreams = 100;
  const auto times = static_cast<size_t>(turns(100, 20));
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 5;
  uint32_t number = 0;
  for (size_t stream = 0; stream < kStreams; stream++) {
    std::vector<StoredPacket> packets;
    // Equal times too, within a stream and among streams.
    int64_t timeNs = kStartNs;
    for (int i = 0; i < 10; i++) {
      timeNs += static_cast<int64_t>(randomBelow(random, 200));
      packets.push_back(numberedPacket(timeNs, number++, randomBelow(random, 100)));
    }
    store.addStream(packets);
  }
  const TempDirectory others;
  DownloadOptions options = store.options();
  options.streams = renamed(store, others, times);

  DownloadBench bench;
  // A quarter of the usual 1,024: a device has four downloads.
  const OpenFileLimit limit(256);
  const Bytes body = readBody(*bench.open(options));

  std::vector<StoredPacket> expected;
  const std::vector<StoredPacket> once = store.inRange(0, INT64_MAX);
  for (size_t at = 0; at < once.size();) {
    // Packets with equal times are ordered by name, and those with the same name by stream.
    size_t end = at;
    while (end < once.size() && once[end].timestampNs == once[at].timestampNs) end++;
    for (size_t time = 0; time < times; time++) {
      expected.insert(expected.end(), once.begin() + static_cast<ptrdiff_t>(at),
                      once.begin() + static_cast<ptrdiff_t>(end));
    }
    at = end;
  }
  EXPECT_TRUE(packetsOf(body) == expected);
}

/// How much more private memory the process has than when this was created.
class MemoryGrowth {
 public:
  MemoryGrowth() : before_(now()) {}
  uint64_t bytes() const { return std::max(now(), before_) - before_; }

 private:
  static uint64_t now() {
    std::ifstream statm("/proc/self/statm");
    uint64_t total = 0;
    uint64_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  const uint64_t before_;
};

/// Packets that fill more than two blocks; every second time two neighbours are in the wrong order.
std::vector<StoredPacket> twoBlocks(std::mt19937_64& random) {
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 800; i++) {
    const int64_t disorderNs = i % 2 == 0 ? 1500 : 0;
    packets.push_back(
        numberedPacket(kStartNs + i * 1000 + disorderNs, i, 200 + randomBelow(random, 1000)));
  }
  return packets;
}

TEST(ManyInputs, BlocksOfManyTakeABoundedMemory) {
  constexpr size_t kTimes = 2000;
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(twoBlocks(random));
  const TempDirectory others;
  DownloadOptions options = store.options();
  options.streams = renamed(store, others, kTimes);

  DownloadBench bench;
  const MemoryGrowth growth;
  const auto download = bench.open(options);
  uint64_t mostBytes = 0;
  uint64_t bytes = 0;
  while (bytes < uint64_t{24} << 20) {
    const Download::Answer part = nextPart(*download);
    ASSERT_TRUE(part && *part);
    bytes += (*part)->size;
    download->release(part->get());
    mostBytes = std::max(mostBytes, growth.bytes());
  }
  download->close();
  // With whole blocks, two slices at a time took 1,000 MiB. Some 80 would do, but the address
  // sanitizer keeps up to 256 MiB of freed memory.
  EXPECT_LT(mostBytes, uint64_t{500} << 20);
}

TEST(ManyInputs, PiecesOfBlocksGiveThePacketsInOrderButThoseOfDamagedBlocks) {
  const auto times = static_cast<size_t>(turns(1000, 100));
  auto random = seededRandom();
  StoredStreams store;
  const std::vector<StoredPacket> packets = twoBlocks(random);
  store.addStream(packets);
  const std::string segment = store.paths()[0][0];
  const BlockEntry last = readSegmentIndex(segment)->blocks.back();
  damage(segment, last);
  const TempDirectory others;
  DownloadOptions options = store.options();
  options.streams = renamed(store, others, times);
  // Begins and ends within blocks.
  options.beginNs = kStartNs + 100'500;
  options.endNs = kStartNs + 790'000;

  DownloadBench bench;
  const auto download = bench.open(options);
  const Bytes body = readBody(*download);
  EXPECT_EQ(download->totals().corruptBlocks, times);

  const std::vector<StoredPacket> intact(packets.begin(), packets.end() - last.packets);
  std::vector<StoredPacket> once;
  for (const StoredPacket& packet : intact) {
    if (packet.timestampNs >= options.beginNs && packet.timestampNs < options.endNs) {
      once.push_back(packet);
    }
  }
  std::ranges::stable_sort(once, {}, &StoredPacket::timestampNs);
  size_t at = 0;
  const std::vector<StoredPacket> delivered = packetsOf(body);
  ASSERT_EQ(delivered.size(), once.size() * times);
  for (const StoredPacket& packet : delivered) {
    ASSERT_TRUE(packet == once[at++ / times]);
  }
}

TEST(ManyInputs, DamagedBlocksKeepNoFileOpen) {
  StoredStreams store;
  store.packetsPerBlock = 5;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 20; i++) packets.push_back(numberedPacket(kStartNs + i, i, 100));
  store.addStream(packets);
  const std::string segment = store.paths()[0][0];
  damage(segment, readSegmentIndex(segment)->blocks[0]);
  const TempDirectory others;
  DownloadOptions options = store.options();
  options.streams = renamed(store, others, 400);

  DownloadBench bench;
  const OpenFileLimit limit(256);
  EXPECT_EQ(packetsOf(readBody(*bench.open(options))).size(), 400u * 15);
}

}  // namespace
}  // namespace capfleet::test
