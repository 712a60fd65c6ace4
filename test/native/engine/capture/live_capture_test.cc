#include "capture/live_capture.h"

#include <gtest/gtest.h>

#include <future>

#include "support/loopback_sender.h"
#include "support/stored_packets.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

std::vector<RecordedStream> stop(LiveCapture& capture) {
  std::promise<std::vector<RecordedStream>> ended;
  capture.stop([&ended](std::vector<RecordedStream> streams) { ended.set_value(streams); });
  return ended.get_future().get();
}

std::vector<uint32_t> numbersIn(const std::string& folder) {
  std::vector<uint32_t> numbers;
  if (!std::filesystem::exists(folder + "/cap0")) return numbers;
  for (const StoredPacket& packet : storedPackets(folder + "/cap0")) {
    numbers.push_back(loadLe32(&packet.captured[42]));
  }
  return numbers;
}

LiveCaptureOptions optionsFor(const LoopbackSender& sender, uint32_t threads = 1) {
  LivePort port;
  port.interfaceName = "lo";
  port.threads = threads;
  port.ringBytes = uint64_t{4} << 20;
  port.filter = portFilter(sender.port());
  LiveCaptureOptions options;
  options.ports = {port};
  options.syncIntervalNs = 50'000'000;
  options.queueBytes = uint64_t{8} << 20;
  return options;
}

/// Every number occurs once and in order over the folders, and every packet is accounted for.
TEST(LiveCapture, RollsWhilePacketsComeWithoutLosingOrDoublingOne) {
  LoopbackSender sender;
  auto capture = LiveCapture::open(optionsFor(sender));
  SKIP_UNLESS_CAPTURED(capture);
  const TempDirectory directory;
  constexpr uint32_t kPackets = 4000, kRolls = 8;
  (*capture)->start(directory.folder("r0"));
  std::thread counting([&] {
    for (int i = 0; i < 200; ++i) {
      for (const LivePortCounts& port : (*capture)->counts().ports) {
        EXPECT_EQ(port.seenPackets, port.storedPackets + port.filteredPackets + port.ringDrops +
                                        port.diskDrops + port.pendingPackets);
        EXPECT_LE(port.pendingPackets, port.seenPackets);
      }
    }
  });
  uint64_t finished = 0;
  std::vector<std::future<uint64_t>> ends;
  for (uint32_t i = 0; i < kPackets; ++i) {
    sender.send(i);
    if (i % (kPackets / kRolls) != 0 || i == 0) continue;
    const auto promise = std::make_shared<std::promise<uint64_t>>();
    ends.push_back(promise->get_future());
    const auto onEnded = [promise](const std::vector<RecordedStream>& streams) {
      uint64_t packets = 0;
      for (const auto& stream : streams) {
        for (const auto& segment : stream.segments) packets += segment.packets;
      }
      promise->set_value(packets);
    };
    (*capture)->roll(directory.folder("r" + std::to_string(ends.size())), onEnded);
  }
  const auto last = stop(**capture);
  counting.join();
  for (auto& end : ends) finished += end.get();
  for (const auto& stream : last) {
    for (const auto& segment : stream.segments) finished += segment.packets;
  }
  std::vector<uint32_t> numbers, expected;
  for (uint32_t i = 0; i <= ends.size(); ++i) {
    for (const uint32_t number : numbersIn(directory.path() + "/r" + std::to_string(i))) {
      numbers.push_back(number);
    }
  }
  for (uint32_t i = 0; i < kPackets; ++i) expected.push_back(i);
  EXPECT_EQ(numbers, expected);
  EXPECT_EQ(finished, kPackets);
  const LivePortCounts port = (*capture)->counts().ports.at(0);
  EXPECT_EQ(port.storedPackets, kPackets);
  EXPECT_EQ(port.pendingPackets, 0u);
  EXPECT_EQ(port.ringDrops + port.diskDrops, 0u);
}

TEST(LiveCapture, CountsEachCaptureAnewAndSeesNothingBetweenThem) {
  LoopbackSender sender;
  auto capture = LiveCapture::open(optionsFor(sender, 2));
  SKIP_UNLESS_CAPTURED(capture);
  const TempDirectory directory;
  for (uint32_t round = 1; round <= 3; ++round) {
    sender.send(1000);
    (*capture)->start(directory.path());
    for (uint32_t i = 0; i < 10 * round; ++i) sender.send(i);
    const auto streams = stop(**capture);
    sender.send(2000);
    ASSERT_EQ(streams.size(), 1u);
    EXPECT_EQ(streams[0].segments.at(0).packets, 10 * round);
    EXPECT_EQ(streams[0].segments.at(0).number, round) << "behind the segments that are there";
    EXPECT_EQ((*capture)->counts().ports.at(0).storedPackets, 10 * round);
  }
  EXPECT_EQ(numbersIn(directory.path()).size(), 60u);
}

TEST(LiveCapture, SaysOnAnIdleWireThatTimeGoesOn) {
  LoopbackSender sender;
  auto capture = LiveCapture::open(optionsFor(sender));
  SKIP_UNLESS_CAPTURED(capture);
  const TempDirectory directory;
  (*capture)->start(directory.path());
  const int64_t beginNs = wallNs();
  const int64_t limitNs = steadyNs() + 20'000'000'000;
  while ((*capture)->counts().flushedNs <= beginNs && steadyNs() < limitNs) {
    std::this_thread::yield();
  }
  EXPECT_GT((*capture)->counts().flushedNs, beginNs);
  EXPECT_LT((*capture)->counts().flushedNs, wallNs());
  EXPECT_TRUE(stop(**capture).empty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "no packet, no folder";
}

TEST(LiveCapture, NamesAnInterfaceThatIsNotThere) {
  LoopbackSender sender;
  LiveCaptureOptions options = optionsFor(sender);
  options.ports[0].interfaceName = "nosuchport";
  const auto capture = LiveCapture::open(options);
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, Code::kCaptureUnavailable);
}

TEST(LiveCapture, RefusesAQueueThatItsThreadsCannotShare) {
  LoopbackSender sender;
  LiveCaptureOptions options = optionsFor(sender, 3);
  options.queueBytes = uint64_t{3} << 20;
  options.queueBytes -= 1;
  const auto capture = LiveCapture::open(options);
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, Code::kBadParameter);
}

}  // namespace
}  // namespace capfleet::test
