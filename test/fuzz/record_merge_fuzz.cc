// Property: arbitrary bytes as streams in arbitrary pieces are merged without reading freed bytes.
// The output consists of whole records in the order of (running maximum, input, arrival), all of
// them unless an option leaves some out, and figures and dropped counts account for every byte. The
// same merge in pcapng, with what is said of copies, is read back as the same records.
//
// Input: 1 byte streams, resolution and byte order, 1 byte which options, 4 bytes alignment, 2
// bytes longest span, 1 byte most packets, 2 bytes most bytes, 2 bytes time of duplicates, 1 byte
// space after the longest record; then pieces: 1 byte stream and what happens before, 1 byte
// length, bytes.
#include <algorithm>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "merge/merged_interfaces.h"
#include "merge/pcapng_records.h"
#include "merge/record_merge.h"
#include "os/byte_order.h"

namespace {

using capfleet::kMaxCapturedLength;
using capfleet::kNanosPerSecond;
using capfleet::kRecordHeaderBytes;
using capfleet::loadBe32;
using capfleet::loadLe32;
using capfleet::MergedInterfaces;
using capfleet::PcapngOutput;
using capfleet::PcapngRecords;
using capfleet::RecordInput;
using capfleet::RecordInputOptions;
using capfleet::RecordMerge;
using capfleet::RecordMergeOptions;
using capfleet::storeLe32;
using capfleet::fuzz::FuzzInput;
using capfleet::fuzz::require;
using Bytes = std::vector<uint8_t>;

struct Piece {
  bool asksFigures;
  bool forgets;  ///< less than what was shown before, as from a stream that broke off
  Bytes bytes;
};

struct Record {
  int64_t key;
  Bytes bytes;
};

void swapHeader(Bytes& record) {
  for (size_t at = 0; at < kRecordHeaderBytes; at += 4)
    storeLe32(&record[at], loadBe32(&record[at]));
}

void alignRecord(Bytes& record, const RecordInputOptions& options) {
  const int64_t shownUnitNs = options.nanoseconds ? 1 : 1000;
  const int64_t ns = loadLe32(&record[0]) * kNanosPerSecond + loadLe32(&record[4]) * shownUnitNs;
  const int64_t aligned =
      std::clamp<int64_t>(ns - options.alignNs, 0, capfleet::kTimestampEndNs - 1);
  storeLe32(&record[0], static_cast<uint32_t>(aligned / kNanosPerSecond));
  storeLe32(&record[4], static_cast<uint32_t>(aligned % kNanosPerSecond));
}

/// The records that an input must yield, found by joining the pieces.
std::vector<Record> recordsOf(const std::vector<Piece>& pieces, const RecordInputOptions& options) {
  std::vector<Record> records;
  Bytes joined;
  for (const Piece& piece : pieces) {
    if (piece.forgets) joined.clear();
    joined.insert(joined.end(), piece.bytes.begin(), piece.bytes.end());
    while (joined.size() >= kRecordHeaderBytes) {
      const uint32_t captured = options.bigEndian ? loadBe32(&joined[8]) : loadLe32(&joined[8]);
      if (captured > kMaxCapturedLength || joined.size() < kRecordHeaderBytes + captured) break;
      const auto end = joined.begin() + kRecordHeaderBytes + captured;
      Record record{0, {joined.begin(), end}};
      joined.erase(joined.begin(), end);
      if (options.bigEndian) swapHeader(record.bytes);
      if (options.alignNs != 0 || !options.nanoseconds) alignRecord(record.bytes, options);
      record.key = loadLe32(&record.bytes[0]) * kNanosPerSecond + loadLe32(&record.bytes[4]);
      if (!records.empty()) record.key = std::max(record.key, records.back().key);
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<Record> inOrder(const std::vector<std::vector<Record>>& inputs) {
  std::vector<Record> all;
  for (const auto& records : inputs) all.insert(all.end(), records.begin(), records.end());
  std::ranges::stable_sort(all, {}, &Record::key);
  return all;
}

/// Shows pieces to an input, each in its own heap block, which is freed when the input has used it
/// up.
class Stream {
 public:
  Stream(const std::vector<Piece>& pieces, const RecordInputOptions& options)
      : input_(options), pieces_(&pieces) {}

  RecordInput& input() { return input_; }

  void fill() {
    while (!input_.hasRecord() && next_ < pieces_->size()) {
      shown_.reset();
      const Piece& piece = (*pieces_)[next_++];
      if (piece.asksFigures) input_.figures();
      if (piece.forgets) input_.forget();
      if (input_.impossibleLength()) continue;
      shown_ = std::make_unique<uint8_t[]>(piece.bytes.size());
      std::ranges::copy(piece.bytes, shown_.get());
      input_.show({shown_.get(), piece.bytes.size()});
    }
  }

 private:
  RecordInput input_;
  const std::vector<Piece>* pieces_;
  size_t next_ = 0;
  std::unique_ptr<uint8_t[]> shown_;
};

struct Case {
  RecordInputOptions inputs;
  RecordMergeOptions options;
  uint64_t moreRoom;  ///< space in an output beyond the longest record
  std::vector<std::vector<Piece>> streams;

  bool leavesSomethingOut() const {
    return options.maxSpanNs || options.maxPackets || options.maxBytes || options.dedup;
  }
};

RecordMergeOptions takeOptions(FuzzInput& input, uint64_t chosen) {
  RecordMergeOptions options;
  options.linkTypeWord = (chosen & 32) != 0 ? 1 : 101;
  const auto span = static_cast<int64_t>(input.take(2));
  const uint64_t packets = input.take(1);
  const uint64_t bytes = input.take(2);
  const auto dedup = static_cast<int64_t>(input.take(2));
  if ((chosen & 2) != 0) options.maxSpanNs = span;
  if ((chosen & 4) != 0) options.maxPackets = packets;
  if ((chosen & 8) != 0) options.maxBytes = bytes;
  if ((chosen & 16) != 0) options.dedup = {dedup};
  if ((chosen & 64) != 0) options.sliceBytes = static_cast<uint32_t>(dedup & 63);
  return options;
}

Case takeCase(FuzzInput input) {
  const uint64_t shape = input.take(1);
  const uint64_t chosen = input.take(1);
  const int64_t alignMs = static_cast<int32_t>(input.take(4));
  Case given{{.nanoseconds = (shape & 4) == 0,
              .widens = true,
              .bigEndian = (shape & 16) != 0,
              .alignNs = (chosen & 1) != 0 ? alignMs * 1'000'001 : 0,
              .marksTail = (shape & 8) != 0},
             takeOptions(input, chosen),
             input.take(1),
             {}};
  given.streams.resize(1 + shape % 4);
  while (!input.rest().empty()) {
    const uint64_t head = input.take(1);
    const auto from = input.takeBytes(1);
    given.streams[head % given.streams.size()].push_back(
        {(head & 64) != 0, (head & 128) != 0, Bytes(from.begin(), from.end())});
  }
  return given;
}

/// All that the merge of the streams writes.
Bytes outputOf(RecordMerge& merge, std::deque<Stream>& streams, size_t outputBytes) {
  const auto output = std::make_unique<uint8_t[]>(outputBytes);
  Bytes merged;
  for (auto state = RecordMerge::State::kReady; state != RecordMerge::State::kEnd;) {
    size_t written = 0;
    while ((state = merge.advance({output.get(), outputBytes}, written)) ==
           RecordMerge::State::kDry) {
      streams[merge.dryInput()].fill();
      merge.refilled();
    }
    require(state == RecordMerge::State::kEnd || written > 0);
    merged.insert(merged.end(), output.get(), output.get() + written);
  }
  return merged;
}

/// Merges to the end; checks that all output is accounted for by figures() and dropped().
Bytes mergedOf(const Case& given, size_t outputBytes) {
  std::deque<Stream> streams;
  for (const auto& pieces : given.streams) streams.emplace_back(pieces, given.inputs);
  std::vector<RecordInput*> inputs;
  for (Stream& stream : streams) {
    stream.fill();
    inputs.push_back(&stream.input());
  }
  RecordMerge merge(inputs, given.options);
  const Bytes merged = outputOf(merge, streams, outputBytes);
  uint64_t accounted = 0;
  for (uint32_t i = 0; i < inputs.size(); i++) {
    accounted += inputs[i]->figures().bytes - merge.dropped(i).bytes;
  }
  require(accounted == merged.size());
  return merged;
}

/// A section, or an interface of link type Ethernet, without options.
Bytes plainBlock(uint32_t type, std::initializer_list<uint32_t> words) {
  const auto bytes = static_cast<uint32_t>(4 * words.size() + 12);
  Bytes block(bytes);
  uint8_t* to = block.data();
  const auto put = [&](uint32_t word) {
    storeLe32(to, word);
    to += 4;
  };
  put(type);
  put(bytes);
  for (const uint32_t word : words) put(word);
  put(bytes);
  return block;
}

/// The same merge in pcapng, each stream with an interface of its own.
Bytes mergedInBlocks(Case given, size_t outputBytes) {
  MergedInterfaces interfaces;
  PcapngOutput pcapng{&interfaces, {}, 0};
  for (size_t i = 0; i < given.streams.size(); i++) {
    const std::string name(i == 1 ? 100 : 1, 'n');
    pcapng.ofInputs.emplace_back(
        interfaces.add(name, given.options.linkTypeWord, plainBlock(1, {1, 0})));
  }
  given.options.pcapng = pcapng;
  std::deque<Stream> streams;
  std::vector<RecordInput*> inputs;
  for (const auto& pieces : given.streams) {
    streams.emplace_back(pieces, given.inputs).fill();
    inputs.push_back(&streams.back().input());
  }
  RecordMerge merge(inputs, given.options);
  return outputOf(merge, streams, outputBytes);
}

/// The records of the blocks, without tags. All blocks must be whole.
Bytes recordsIn(const Bytes& blocks) {
  Bytes stream = plainBlock(0x0a0d0d0a, {0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX});
  stream.insert(stream.end(), blocks.begin(), blocks.end());
  PcapngRecords records;
  records.show(stream);
  Bytes found;
  for (;;) {
    const auto state = records.advance();
    require(state != PcapngRecords::State::kBroken);
    if (state == PcapngRecords::State::kDry) break;
    if (state == PcapngRecords::State::kInterface) records.addInterface(0);
    if (state != PcapngRecords::State::kRecords) continue;
    for (auto rest = records.records(); !rest.empty();) {
      const uint32_t tagged = loadLe32(&rest[8]);
      const size_t bytes = kRecordHeaderBytes + tagged;
      const size_t at = found.size();
      found.insert(found.end(), rest.begin(), rest.begin() + kRecordHeaderBytes);
      storeLe32(&found[at + 8], tagged - capfleet::kInterfaceTagBytes);
      found.insert(found.end(), rest.begin() + kRecordHeaderBytes + capfleet::kInterfaceTagBytes,
                   rest.begin() + static_cast<ptrdiff_t>(bytes));
      if (bytes == rest.size()) break;
      rest = rest.subspan(bytes + capfleet::betweenTaggedRecords(static_cast<uint32_t>(bytes)));
    }
  }
  require(records.isBetweenBlocks());
  return found;
}

void slice(Bytes& record, uint32_t sliceBytes) {
  if (record.size() <= kRecordHeaderBytes + sliceBytes) return;
  record.resize(kRecordHeaderBytes + sliceBytes);
  storeLe32(&record[8], sliceBytes);
}

/// Each record of the output is the next of `all`. Only duplicates may be missing, and what a limit
/// cut off at the end.
void checkOrder(std::span<const uint8_t> output, const std::vector<Record>& all, bool hasGaps) {
  for (const auto& [key, bytes] : all) {
    if (output.size() >= bytes.size() && std::ranges::equal(bytes, output.first(bytes.size()))) {
      output = output.subspan(bytes.size());
    } else if (!hasGaps) {
      break;
    }
  }
  require(output.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Case given = takeCase(FuzzInput(std::span(data, size)));
  std::vector<std::vector<Record>> records;
  for (const auto& pieces : given.streams) records.push_back(recordsOf(pieces, given.inputs));
  auto all = inOrder(records);
  size_t bytes = 0;
  size_t longest = kRecordHeaderBytes;
  for (Record& record : all) {
    longest = std::max(longest, record.bytes.size());
    if (given.options.sliceBytes) slice(record.bytes, *given.options.sliceBytes);
    bytes += record.bytes.size();
  }
  const Bytes merged = mergedOf(given, longest + given.moreRoom);
  checkOrder(merged, all, given.options.dedup.has_value());
  require(given.leavesSomethingOut() || merged.size() == bytes);
  // Other times have several forms in a PCAP, and a limit of bytes leaves less room for blocks.
  const bool isExact = std::ranges::all_of(
      all, [](const Record& one) { return loadLe32(&one.bytes[4]) < kNanosPerSecond; });
  if (!isExact || given.options.maxBytes) return 0;
  constexpr size_t kOtherBytes = 8192;
  require(recordsIn(mergedInBlocks(given, longest + kOtherBytes + given.moreRoom)) == merged);
  return 0;
}
