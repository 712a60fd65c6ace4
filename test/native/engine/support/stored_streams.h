// Streams of numbered packets in a real store, downloads of them, and the expected contents of
// these downloads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "download/download_opening.h"
#include "store/segment_path.h"
#include "store/segment_writer.h"
#include "support/stored_packets.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// The log's entry for a segment that is directly in its port's folder.
inline SegmentEntry entryOf(const SegmentSummary& segment, uint32_t linkTypeWord = 1,
                            uint32_t port = 0) {
  SegmentEntry entry;
  entry.number = segment.number;
  entry.port = port;
  entry.flags = segment.isFlat ? kSegmentFlat : 0;
  entry.minNs = segment.minNs;
  entry.maxNs = segment.maxNs;
  entry.packets = segment.packets;
  entry.bytes = segment.bytes;
  entry.checksum = segment.checksum;
  entry.linkTypeWord = linkTypeWord;
  entry.snaplen = 262144;
  return entry;
}

/// Streams in a temporary folder, and the packets in them, in recorded order.
class StoredStreams {
 public:
  /// Ends the block of the stream that is being written after this many packets; 0 = when full.
  size_t packetsPerBlock = 0;
  uint64_t segmentBytes = uint64_t{1} << 30;

  void addStream(const std::vector<StoredPacket>& packets, uint32_t linkTypeWord = 1,
                 uint32_t port = 0) {
    const std::string folder = directory_.folder("s" + std::to_string(paths_.size()));
    auto writer = SegmentWriter::open({folder, port, {linkTypeWord, 262144}, segmentBytes, false});
    ASSERT_TRUE(writer);
    size_t inBlock = 0;
    for (const StoredPacket& packet : packets) {
      ASSERT_TRUE(writer->append(packet.timestampNs, packet.originalLength, packet.captured));
      const bool endsBlock = packetsPerBlock != 0 && ++inBlock % packetsPerBlock == 0;
      ASSERT_TRUE(!endsBlock || writer->flush());
    }
    const auto segments = writer->close();
    ASSERT_TRUE(segments);
    StreamSegments stream{folder, {}};
    std::vector<std::string> paths;
    for (const SegmentSummary& segment : *segments) {
      stream.segments.push_back(entryOf(segment, linkTypeWord, port));
      paths.push_back(stream.pathOf(stream.segments.back()));
    }
    streams_.push_back(std::move(stream));
    paths_.push_back(paths);
    packets_.push_back(packets);
  }

  /// A download of everything; change the options that the test is about.
  DownloadOptions options() const {
    DownloadOptions options;
    options.streams = streams_;
    options.beginNs = 0;
    options.endNs = INT64_MAX;
    return options;
  }

  /// The packets in the range by timestamp, then stream, then position: the order that downloads
  /// guarantee.
  std::vector<StoredPacket> inRange(int64_t beginNs, int64_t endNs) const {
    std::vector<StoredPacket> all;
    for (const auto& packets : packets_) {
      for (const StoredPacket& packet : packets) {
        if (packet.timestampNs >= beginNs && packet.timestampNs < endNs) all.push_back(packet);
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const StoredPacket& a, const StoredPacket& b) {
      return a.timestampNs < b.timestampNs;
    });
    return all;
  }

  const std::vector<StreamSegments>& streams() const { return streams_; }
  /// The names of the segments, without file extensions.
  const std::vector<std::vector<std::string>>& paths() const { return paths_; }

 private:
  TempDirectory directory_;
  std::vector<StreamSegments> streams_;
  std::vector<std::vector<std::string>> paths_;
  std::vector<std::vector<StoredPacket>> packets_;
};

/// Removes the tables of addresses of all streams.
inline void removeAddresses(const StoredStreams& streams) {
  for (const StreamSegments& stream : streams.streams()) {
    for (const SegmentEntry& entry : stream.segments) {
      std::filesystem::remove(addressTablePath(stream.folder, entry.number));
    }
  }
}

/// A thread pool and a slab pool, whose destructor checks that no slab was lost.
class DownloadBench {
 public:
  explicit DownloadBench(unsigned threads = 2)
      : workers_(std::make_unique<WorkerPool>(threads)), slabs_(std::make_shared<BufferPool>()) {}
  ~DownloadBench() {
    workers_.reset();  // ends when all tasks have ended
    EXPECT_EQ(slabs_->outstanding(), 0u);
  }

  std::shared_ptr<Download> open(DownloadOptions options) {
    auto download = openDownload(std::move(options), *workers_, slabs_);
    EXPECT_TRUE(download) << (download ? "" : download.error().message);
    return download ? *download : nullptr;
  }
  Result<std::shared_ptr<Download>> tryOpen(DownloadOptions options) {
    return openDownload(std::move(options), *workers_, slabs_);
  }
  size_t slabsInUse() const { return slabs_->outstanding(); }

 private:
  std::unique_ptr<WorkerPool> workers_;
  std::shared_ptr<BufferPool> slabs_;
};

inline Download::Answer nextPart(Download& download) {
  std::promise<Download::Answer> promise;
  download.next([&](Download::Answer answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

/// The whole body. Up to `held` parts are kept unreleased on the way.
inline Bytes readBody(Download& download, size_t held = 0) {
  Bytes body;
  std::deque<SlabPtr> unreleased;
  for (;;) {
    const Download::Answer answer = nextPart(download);
    if (!answer) {
      ADD_FAILURE() << answer.error().message;
      break;
    }
    if (*answer == nullptr) break;
    unreleased.push_back(*answer);
    append(body, {(*answer)->bytes.get(), (*answer)->size});
    if (unreleased.size() <= held) continue;
    download.release(unreleased.front().get());
    unreleased.pop_front();
  }
  for (const SlabPtr& slab : unreleased) download.release(slab.get());
  return body;
}

/// The packets of a nanosecond PCAP.
inline std::vector<StoredPacket> packetsOf(const Bytes& pcap) {
  std::vector<StoredPacket> packets;
  EXPECT_GE(pcap.size(), 24u);
  EXPECT_EQ(loadLe32(pcap.data()), kPcapMagicNanos);
  size_t at = 24;
  while (at < pcap.size()) {
    const RecordHeader header = loadRecordHeader(pcap.data() + at);
    const auto begin = pcap.begin() + static_cast<ptrdiff_t>(at + 16);
    if (at + 16 + header.capturedLength > pcap.size()) {
      ADD_FAILURE() << "the body ends inside a record";
      break;
    }
    packets.push_back(
        {header.timestampNs, header.originalLength, Bytes(begin, begin + header.capturedLength)});
    at += 16 + header.capturedLength;
  }
  return packets;
}

/// Changes one byte in the middle of a block.
inline void damage(const std::string& segment, const BlockEntry& block) {
  std::fstream file(segment + ".pcap", std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(block.offset + block.bytes / 2);
  file.seekg(at);
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(at);
  file.put(byte);
}

/// A packet that contains its number, so that each is unique.
inline StoredPacket numberedPacket(int64_t timestampNs, uint32_t number, size_t capturedLength) {
  Bytes captured(std::max<size_t>(capturedLength, 4));
  storeLe32(captured.data(), number);
  for (size_t i = 4; i < captured.size(); i++) {
    captured[i] = static_cast<uint8_t>(number * 31 + i * 7);
  }
  return {timestampNs, static_cast<uint32_t>(captured.size()), captured};
}

}  // namespace capfleet::test
