// Property: whatever packets, interfaces and remarks a pcapng file is made of, the importer's
// reader finds the same packets in it, each after the description of its interface; the bytes do
// not depend on how the packets were divided into batches; and OutputRecord reads back each block.
//
// Input: 1 byte interfaces, 1 byte remarks and how many interfaces the head describes, then for
// each remark 1 byte length and 8 bytes time; then for each packet 1 byte interface, 8 bytes time,
// 1 byte original length that was not captured, 1 byte that ends a batch if it is odd, 2 bytes
// captured length with the captured bytes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "download/pcapng_framing.h"
#include "fuzz_input.h"
#include "import/capture_file_reader.h"
#include "packet/output_record.h"

namespace {

using capfleet::CaptureFileReader;
using capfleet::CaptureRecord;
using capfleet::PacketBatch;
using capfleet::PcapngOptions;
using capfleet::ReadStep;
using capfleet::fuzz::require;
using Bytes = std::vector<uint8_t>;

struct Packet {
  uint32_t interfaceNumber;
  int64_t timestampNs;
  uint32_t cutBytes;
  bool endsBatch;
  std::span<const uint8_t> captured;
};

class BytesSource final : public capfleet::ByteSource {
 public:
  explicit BytesSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  capfleet::Result<size_t> read(std::span<uint8_t> out) override {
    const size_t count = std::min(out.size(), bytes_.size());
    std::copy_n(bytes_.begin(), count, out.begin());
    bytes_ = bytes_.subspan(count);
    return count;
  }
  uint64_t inputBytes() const override { return 0; }

 private:
  std::span<const uint8_t> bytes_;
};

Bytes block(std::initializer_list<uint32_t> words) {
  const auto bytes = static_cast<uint32_t>(words.size() * 4 + 8);
  Bytes made(bytes);
  uint8_t* at = made.data();
  bool isFirst = true;
  for (const uint32_t word : words) {
    capfleet::storeLe32(at, word);
    at += 4;
    if (isFirst) {
      capfleet::storeLe32(at, bytes);
      at += 4;
      isFirst = false;
    }
  }
  capfleet::storeLe32(at, bytes);
  return made;
}

PcapngOptions optionsOf(capfleet::fuzz::FuzzInput& input) {
  PcapngOptions options;
  options.head = block({0x0A0D0D0A, 0x1A2B3C4D, 1, UINT32_MAX, UINT32_MAX});
  const auto interfaces = static_cast<uint32_t>(input.take(1)) % 16 + 1;
  const auto counts = static_cast<uint32_t>(input.take(1));
  const uint32_t remarks = counts % 8;
  for (uint32_t i = 0; i < interfaces; i++) {
    // Option if_tsresol: nanoseconds.
    options.interfaces.push_back({i, i, block({1, i, 262144, 9 | (1 << 16), 9, 0})});
  }
  options.described = counts / 8 % (interfaces + 1);
  for (uint32_t i = 0; i < options.described; i++) {
    const Bytes& description = options.interfaces[i].description;
    options.head.insert(options.head.end(), description.begin(), description.end());
  }
  for (uint32_t i = 0; i < remarks; i++) {
    const auto length = static_cast<uint32_t>(input.take(1));
    Bytes comment(4 + capfleet::blockPadded(length), 0);
    capfleet::storeLe32(comment.data(), 1 | (length << 16));
    options.remarks.push_back(
        {static_cast<int64_t>(input.take(8) % capfleet::kTimestampEndNs), std::move(comment)});
  }
  std::sort(options.remarks.begin(), options.remarks.end(),
            [](const auto& a, const auto& b) { return a.atNs < b.atNs; });
  return options;
}

std::vector<Packet> packetsOf(capfleet::fuzz::FuzzInput& input, size_t interfaces) {
  std::vector<Packet> packets;
  while (!input.rest().empty()) {
    const auto number = static_cast<uint32_t>(input.take(1) % interfaces);
    const auto timestampNs = static_cast<int64_t>(input.take(8) % capfleet::kTimestampEndNs);
    const auto cutBytes = static_cast<uint32_t>(input.take(1));
    const bool endsBatch = input.take(1) % 2 == 1;
    packets.push_back({number, timestampNs, cutBytes, endsBatch, input.takeBytes(2)});
  }
  return packets;
}

void append(PacketBatch& batch, const Packet& packet) {
  capfleet::Slab& slab = *batch.slab;
  uint8_t* const to = slab.bytes.get() + slab.size;
  const auto captured = static_cast<uint32_t>(packet.captured.size());
  capfleet::storePacketBlock(
      to, {packet.interfaceNumber, packet.timestampNs, captured, captured + packet.cutBytes});
  std::copy(packet.captured.begin(), packet.captured.end(), to + capfleet::kPacketBlockHeaderBytes);
  const auto record = capfleet::loadOutputRecord(to, {true, false});
  require(record.bytes == capfleet::blockBytes(to) && record.timestampNs == packet.timestampNs);
  require(std::equal(record.captured.begin(), record.captured.end(), packet.captured.begin(),
                     packet.captured.end()));
  slab.size += record.bytes;
  batch.count(1, packet.timestampNs, packet.timestampNs);
}

/// The file, framed in batches that end where the packets say, or with every packet.
Bytes fileOf(const PcapngOptions& options, const std::vector<Packet>& packets, bool onePerBatch) {
  static capfleet::BufferPool pool;
  capfleet::PcapngFraming framing(options);
  Bytes file = options.head;
  PacketBatch batch;
  const auto finish = [&] {
    framing.frame(batch);
    file.insert(file.end(), batch.slab->bytes.get(), batch.slab->bytes.get() + batch.slab->size);
    pool.give(std::move(batch.slab));
    batch = {};
  };
  for (const Packet& packet : packets) {
    const size_t bytes = capfleet::packetBlockBytes(static_cast<uint32_t>(packet.captured.size()));
    if (batch.slab && batch.roomBeside(options.insertedBytes()) < bytes) finish();
    if (!batch.slab) batch.slab = pool.take();
    append(batch, packet);
    if (onePerBatch || packet.endsBatch) finish();
  }
  if (batch.slab) finish();
  uint64_t counted = 0;
  for (const uint64_t count : framing.packets()) counted += count;
  require(counted == packets.size());
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const PcapngOptions options = optionsOf(input);
  const std::vector<Packet> packets = packetsOf(input, options.interfaces.size());
  const Bytes file = fileOf(options, packets, false);
  require(file == fileOf(options, packets, true));

  capfleet::InputStream stream(std::make_unique<BytesSource>(file), false,
                               CaptureFileReader::kMinBufferBytes);
  auto reader = CaptureFileReader::open(std::move(stream));
  require(static_cast<bool>(reader));
  CaptureRecord record;
  auto expected = packets.begin();
  uint32_t described = 0;
  for (;;) {
    const ReadStep step = (*reader)->next(record);
    if (step == ReadStep::kEnd) break;
    if (step == ReadStep::kInterface) {
      require(record.interfaceIndex == described && record.linkTypeWord == described);
      described++;
      continue;
    }
    require(step == ReadStep::kPacket && expected != packets.end());
    require(record.interfaceIndex == expected->interfaceNumber);
    require(record.timestampNs == expected->timestampNs);
    require(record.originalLength == expected->captured.size() + expected->cutBytes);
    require(std::equal(record.captured.begin(), record.captured.end(), expected->captured.begin(),
                       expected->captured.end()));
    expected++;
  }
  require(expected == packets.end());
  return 0;
}
