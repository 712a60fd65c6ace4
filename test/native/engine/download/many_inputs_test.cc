#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

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

/// The same streams again and again, under other names of the same files.
std::vector<std::vector<std::string>> renamed(const StoredStreams& store, const TempDirectory& into,
                                              size_t times) {
  std::vector<std::vector<std::string>> streams;
  for (size_t time = 0; time < times; time++) {
    for (const std::vector<std::string>& segments : store.paths()) {
      std::vector<std::string>& paths = streams.emplace_back();
      for (const std::string& segment : segments) {
        paths.push_back(into.path() + "/" + std::to_string(streams.size()) + "-" +
                        std::to_string(paths.size()));
        for (const char* ending : {".pcap", ".idx"}) {
          std::filesystem::create_hard_link(segment + ending, paths.back() + ending);
        }
      }
    }
  }
  return streams;
}

TEST(ManyInputs, TenThousandThatOverlapAreMergedWithFewOpenFiles) {
  constexpr size_t kStreams = 100;
  constexpr size_t kTimes = 100;
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 5;
  uint32_t number = 0;
  for (size_t stream = 0; stream < kStreams; stream++) {
    std::vector<StoredPacket> packets;
    // Equal times too, within a stream and among them.
    int64_t timeNs = kStartNs;
    for (int i = 0; i < 10; i++) {
      timeNs += static_cast<int64_t>(randomBelow(random, 200));
      packets.push_back(numberedPacket(timeNs, number++, randomBelow(random, 100)));
    }
    store.addStream(packets);
  }
  const TempDirectory others;
  DownloadOptions options = store.options();
  options.streams = renamed(store, others, kTimes);

  DownloadBench bench;
  // A fourth of the usual 1,024: a device has four downloads.
  const OpenFileLimit limit(256);
  const Bytes body = readBody(*bench.open(options));

  std::vector<StoredPacket> expected;
  const std::vector<StoredPacket> once = store.inRange(0, INT64_MAX);
  for (size_t at = 0; at < once.size();) {
    // Packets of equal times come by the name, and those of one name by the stream.
    size_t end = at;
    while (end < once.size() && once[end].timestampNs == once[at].timestampNs) end++;
    for (size_t time = 0; time < kTimes; time++) {
      expected.insert(expected.end(), once.begin() + static_cast<ptrdiff_t>(at),
                      once.begin() + static_cast<ptrdiff_t>(end));
    }
    at = end;
  }
  EXPECT_TRUE(packetsOf(body) == expected);
}

}  // namespace
}  // namespace capfleet::test
