#include "capture/capture_writer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <future>

#include "store/segment_folder.h"
#include "support/file_faults.h"
#include "support/made_blocks.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

/// Two ports; the first has two threads.
class CaptureWriterTest : public testing::Test {
 protected:
  static constexpr size_t kBlockPackets = 10;

  CaptureWriterOptions options() const {
    CaptureWriterOptions options;
    options.ports = {{0, {1, kMaxCapturedLength}}, {3, {1, kMaxCapturedLength}}};
    options.portOfThread = {0, 0, 1};
    options.segmentBytes = 8'000;
    options.commitIntervalNs = 10'000'000;
    options.commitBytes = 64'000;
    return options;
  }

  void handOver(uint32_t thread, uint32_t recording, std::span<const StoredPacket> packets) {
    for (size_t i = 0; i < packets.size(); i += kBlockPackets) {
      queue_.push({thread, recording, copyOf(packets.subspan(i, kBlockPackets)), std::nullopt});
    }
  }

  /// The thread continues with another recording; everything before has been passed on.
  void enter(uint32_t thread, uint32_t recording, Instant covered = {}) {
    queue_.push({thread, recording, nullptr, covered});
  }

  std::future<std::vector<RecordedStream>> end(uint32_t recording, bool isLast) {
    const auto promise = std::make_shared<std::promise<std::vector<RecordedStream>>>();
    writer_->end(recording, isLast, [promise](std::vector<RecordedStream> streams) {
      promise->set_value(std::move(streams));
    });
    return promise->get_future();
  }

  static uint64_t packetsOf(const std::vector<RecordedStream>& streams) {
    uint64_t packets = 0;
    for (const RecordedStream& stream : streams) {
      for (const SegmentSummary& segment : stream.segments) packets += segment.packets;
    }
    return packets;
  }

  const TempDirectory directory_;
  BlockQueue queue_{64 * uint64_t{kMaxBlockBytes}};
  std::unique_ptr<CaptureWriter> writer_ = std::make_unique<CaptureWriter>(options(), queue_);

 private:
  std::unique_ptr<CaptureBlock> copyOf(std::span<const StoredPacket> packets) {
    std::unique_ptr<CaptureBlock> block;
    while (!block) block = queue_.takeBlock();
    PacketIntake intake(kMaxCapturedLength, std::nullopt);
    for (const StoredPacket& packet : packets) intake.take(ringPacket(packet), *block);
    return block;
  }
};

TEST_F(CaptureWriterTest, PutsEachBlockIntoTheRecordingThatItsThreadWasIn) {
  const std::string first = directory_.folder("first"), second = directory_.folder("second");
  const auto packets = numberedPackets(400);
  const std::span all(packets);
  writer_->begin(1, first);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 1);
  handOver(0, 1, all.subspan(0, 100));
  writer_->begin(2, second);
  auto ended = end(1, false);
  enter(0, 2);
  handOver(0, 2, all.subspan(100, 100));
  // The second thread of the port still has packets of the first recording.
  handOver(1, 1, all.subspan(200, 50));
  enter(1, 2);
  handOver(2, 1, all.subspan(250, 50));
  enter(2, 2);
  handOver(2, 2, all.subspan(300, 100));
  EXPECT_EQ(packetsOf(ended.get()), 200u);
  auto endedLast = end(2, true);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 3);
  EXPECT_EQ(packetsOf(endedLast.get()), 200u);

  std::vector<StoredPacket> expected(packets.begin(), packets.begin() + 100);
  expected.insert(expected.end(), packets.begin() + 200, packets.begin() + 250);
  EXPECT_EQ(storedPackets(first + "/cap0"), expected);
  EXPECT_EQ(storedPackets(second + "/cap0"),
            std::vector<StoredPacket>(packets.begin() + 100, packets.begin() + 200));
  EXPECT_EQ(storedPackets(first + "/cap3").size(), 50u);
  EXPECT_EQ(storedPackets(second + "/cap3").size(), 100u);
  EXPECT_EQ(writer_->counts().ports[0].packets, 250u);
  EXPECT_EQ(writer_->counts().ports[1].packets, 150u);
}

TEST_F(CaptureWriterTest, SaysThatPacketsAreSafeUpToWhereEveryThreadIsCovered) {
  writer_->begin(1, directory_.path());
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 1, {1000 + thread, 1 + thread});
  const auto packets = numberedPackets(20);
  handOver(1, 1, packets);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 1, {9000 - thread, 90 - thread});
  auto ended = end(1, true);
  for (const uint32_t thread : {0, 1, 2}) queue_.push({thread, 2, nullptr, std::nullopt});
  ended.get();
  EXPECT_EQ(writer_->counts().flushed.wallNs, 8998);
}

TEST_F(CaptureWriterTest, WritesEverythingWhenTheDiskComesBack) {
  writer_->begin(1, directory_.path());
  const auto packets = numberedPackets(200);
  FileFaults faults({3, 1'000'000, ENOSPC, true});
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 1);
  handOver(0, 1, packets);
  while (writer_->counts().diskErrors < 2) std::this_thread::yield();
  EXPECT_NE(writer_->counts().diskMessage.find("No space left"), std::string::npos);
  EXPECT_EQ(writer_->counts().flushed.steadyNs, 0);
  faults.mend();
  auto ended = end(1, true);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 2);
  EXPECT_EQ(packetsOf(ended.get()), 200u);
  EXPECT_EQ(storedPackets(directory_.path() + "/cap0"), packets);
  EXPECT_EQ(writer_->counts().ports[0].lostPackets, 0u);
}

TEST_F(CaptureWriterTest, MakesThePacketsOfOnePortSafeWhileTheFilesOfAnotherCannotBeWritten) {
  const std::string obstacle = directory_.file("cap3", {});
  writer_->begin(1, directory_.path());
  const auto packets = numberedPackets(200);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 1);
  handOver(2, 1, packets);
  handOver(0, 1, packets);
  while (writer_->counts().ports[0].packets < 200) std::this_thread::yield();
  EXPECT_GT(writer_->counts().diskErrors, 0u);
  EXPECT_EQ(writer_->counts().ports[1].packets, 0u);
  std::filesystem::remove(obstacle);
  auto ended = end(1, true);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 2);
  EXPECT_EQ(packetsOf(ended.get()), 400u);
  EXPECT_EQ(writer_->counts().ports[1].lostPackets, 0u);
}

TEST_F(CaptureWriterTest, EndsTheLastRecordingOfADeadDiskAndCountsWhatIsLost) {
  writer_->begin(1, directory_.path());
  FileFaults faults({0, 1'000'000'000, EIO, false});
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 1);
  handOver(2, 1, numberedPackets(60));
  auto ended = end(1, true);
  for (const uint32_t thread : {0, 1, 2}) enter(thread, 2);
  EXPECT_EQ(packetsOf(ended.get()), 0u);
  EXPECT_EQ(writer_->counts().ports[1].lostPackets, 60u);
  EXPECT_EQ(writer_->counts().ports[1].packets, 0u);
}

TEST_F(CaptureWriterTest, TellsWhoeverWaitsWhenItIsDestroyed) {
  writer_->begin(1, directory_.path());
  auto ended = end(1, true);
  writer_.reset();
  EXPECT_TRUE(ended.get().empty());
}

}  // namespace
}  // namespace capfleet::test
