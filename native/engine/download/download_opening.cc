#include "download/download_opening.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace capfleet {
namespace {

/// Raw slabs of a download: those being filled, waiting in order, and being compressed.
uint32_t rawSlabs(const Compression& compression, unsigned threads) {
  constexpr uint32_t kScanSlabs = 8;
  if (compression.codec == Codec::kNone) return kScanSlabs;
  return kScanSlabs + groupsAtOnce(compression, threads) * slabsPerGroup(compression);
}

/// Merges a segment's header into that of the others.
Status mergeHeader(std::optional<PcapFileHeader>& header, const SegmentEntry& other) {
  const uint32_t snaplen = other.snaplen == 0 ? kMaxCapturedLength : other.snaplen;
  if (!header) {
    header = PcapFileHeader{other.linkTypeWord, snaplen};
    return ok();
  }
  const uint32_t mine = linkTypeOf(header->linkTypeWord);
  const uint32_t theirs = linkTypeOf(other.linkTypeWord);
  if (mine != theirs) {
    return Error{Code::kMixedLinkType, "the chosen captures have the link types " +
                                           std::to_string(mine) + " and " + std::to_string(theirs) +
                                           ", but a PCAP file can have only one"};
  }
  // If the length of the frame check sequence differs, the file cannot state it.
  if (header->linkTypeWord != other.linkTypeWord) header->linkTypeWord = mine;
  header->snaplen = std::max(header->snaplen, snaplen);
  return ok();
}

bool describes(const PcapngOptions& pcapng, const SegmentEntry& entry) {
  const auto isOf = [&](const PcapngInterface& one) {
    return one.port == entry.port && one.linkType == linkTypeOf(entry.linkTypeWord);
  };
  return std::any_of(pcapng.interfaces.begin(), pcapng.interfaces.end(), isOf);
}

/// The file header for all segments.
Result<PcapFileHeader> headerOf(const DownloadOptions& options) {
  std::optional<PcapFileHeader> header;
  for (const StreamSegments& stream : options.streams) {
    for (const SegmentEntry& entry : stream.segments) {
      if (options.pcapng && !describes(*options.pcapng, entry)) {
        return Error{Code::kBadParameter, "a segment of port " + std::to_string(entry.port) +
                                              " has no interface in the file"};
      }
      Status status = mergeHeader(header, entry);
      // pcapng has a link type for each interface.
      if (!status && !options.pcapng) return status.error();
    }
  }
  PcapFileHeader merged =
      header.value_or(PcapFileHeader{options.emptyLinkTypeWord, kMaxCapturedLength});
  merged.snaplen = std::min(merged.snaplen, options.sliceBytes);
  // A frame check sequence is not that of a packet that has lost headers.
  if (options.stripped != 0) merged.linkTypeWord = linkTypeOf(merged.linkTypeWord);
  return merged;
}

bool hasVendorTime(const DownloadOptions& options) {
  return options.clock.source != TimeSource::kNic;
}

PacketTransform transformOf(const DownloadOptions& options) {
  PacketTransform transform;
  transform.frameFilter = FrameFilter(options.frameFilter);
  if (options.filter) transform.bpf = std::make_shared<BpfFilter>(*options.filter);
  transform.bpfSeesInnermost = options.filterDecap;
  transform.addresses = options.addresses;
  transform.regex = options.regex;
  transform.clock = options.clock;
  transform.stripped = options.stripped;
  transform.sliceBytes = options.sliceBytes;
  // Copies are found by nanoseconds.
  transform.toMicroseconds = options.toMicroseconds && !options.dedup;
  if (options.pcapng) {
    std::vector<PcapngInterfaces::Interface> interfaces;
    for (const PcapngInterface& one : options.pcapng->interfaces) {
      interfaces.push_back({one.port, one.linkType});
    }
    transform.pcapng =
        std::make_shared<PcapngInterfaces>(std::move(interfaces), options.pcapng->insertedBytes());
  }
  return transform;
}

/// Without the program if it sees other bytes than the stored ones; empty if every packet must be
/// read.
BlockConditions conditionsOf(const DownloadOptions& options) {
  BlockConditions conditions;
  if (options.readsAllBlocks || hasVendorTime(options)) return conditions;
  if (options.filter && !options.filterDecap) conditions.program.emplace(*options.filter);
  conditions.addresses = options.addresses;
  return conditions;
}

WindowOptions windowsOf(const DownloadOptions& options) {
  WindowOptions windows;
  windows.beginNs = options.beginNs;
  windows.endNs = options.endNs;
  if (hasVendorTime(options)) windows.lookBackNs = VendorClock::lookBackNs(options.clock.source);
  windows.sliceBytes = options.scanBytes;
  windows.windowBytes = options.windowBytes;
  windows.conditions = conditionsOf(options);
  windows.checkedBlocks = options.checkedBlocks;
  return windows;
}

/// What lies before `afterBytes` and `limits` is skipped unread, if the indexes determine what that
/// is. If it depends on a filter, on what is stripped, sliced or dropped, or on a vendor's time, or
/// `tsMaxNs` needs the first packet, everything is scanned and dropped.
std::optional<SkipLimits> skipLimitsOf(const DownloadOptions& options, const ScanContext& context) {
  if (!context.transform.keepsSizes() || options.dedup || options.tsMaxNs) return std::nullopt;
  const uint64_t endBytes =
      std::min(options.afterBytes, options.limits.bytes.value_or(options.afterBytes));
  if (endBytes <= kPcapFileHeaderBytes) return std::nullopt;
  return SkipLimits{options.limits.packets.value_or(std::numeric_limits<uint64_t>::max()),
                    endBytes - kPcapFileHeaderBytes};
}

}  // namespace

DownloadOpening::DownloadOpening(DownloadOptions options, WorkerPool& workers,
                                 std::shared_ptr<BufferPool> slabs)
    : options_(std::move(options)), workers_(workers), slabs_(std::move(slabs)) {}

DownloadOpening::~DownloadOpening() = default;

Result<std::shared_ptr<Download>> DownloadOpening::step() {
  if (!context_) {
    if (Status status = begin(); !status) return status.error();
  }
  const Result<bool> isPlanned = plan();
  if (!isPlanned) return isPlanned.error();
  if (!*isPlanned) return std::shared_ptr<Download>{};
  return finish();
}

Status DownloadOpening::begin() {
  if (options_.pcapng && (options_.pcapng->head.size() > kSlabBytes ||
                          options_.pcapng->insertedBytes() > kMostInsertedBytes)) {
    return Error{Code::kBadParameter, "the interfaces and remarks of the file are too long"};
  }
  const Result<PcapFileHeader> header = headerOf(options_);
  if (!header) return header.error();
  header_ = *header;
  context_ = std::make_unique<ScanContext>(transformOf(options_), options_.beginNs, options_.endNs,
                                           conditionsOf(options_));
  if (hasVendorTime(options_)) {
    context_->vendorTimes =
        std::make_unique<VendorTimeStage>(context_->transform, options_.beginNs, options_.tsMaxNs);
  }
  if (const auto most = skipLimitsOf(options_, *context_)) skip_.emplace(*context_, *most);
  for (const StreamSegments& stream : options_.streams) {
    heldBytes_ += stream.segments.size() * sizeof(SegmentEntry);
  }
  if (options_.dedup) heldBytes_ += DuplicateWindow::kHeldBytes;
  planned_.rest = std::make_unique<WindowPlanner>(std::move(options_.streams), windowsOf(options_));
  return ok();
}

/// One step. True once it is known where the scan begins.
Result<bool> DownloadOpening::plan() {
  Result<WindowPlanner::Step> step = planned_.rest->step();
  if (!step) return step.error();
  corruptBlocks_ += step->corruptBlocks;
  if (step->isFinished) planned_.rest.reset();
  if (step->plan && skip_) {
    const Result<size_t> passed = skip_->pass(step->plan);
    if (!passed) return passed.error();
    planned_.firstSlice = *passed;
    const bool isWhole = *passed == step->plan->slices.size();
    if (isWhole && !step->isFinished) return false;
  }
  if (skip_ && step->isFinished) {
    if (Status status = skip_->finish(); !status) return status.error();
  }
  planned_.first = std::move(step->plan);
  return planned_.first != nullptr || step->isFinished;
}

Result<std::shared_ptr<Download>> DownloadOpening::finish() {
  const std::shared_ptr<Download> download(
      new Download(header_, options_, workers_.makeQueue(), std::move(slabs_), corruptBlocks_));
  download->heldBytes_ = heldBytes_;
  OrderedScanOptions scanOptions;
  scanOptions.slabs = rawSlabs(options_.compression, workers_.tasksAtOnce());
  scanOptions.slicesAtOnce = std::min(workers_.tasksAtOnce() + 2, 6u);
  scanOptions.maxSpanNs = options_.tsMaxNs;
  if (context_->vendorTimes) {
    // The stage takes the packets of the slices in order, and measures by their new times.
    scanOptions.slicesAtOnce = 1;
    scanOptions.maxSpanNs.reset();
  }
  if (skip_) download->skip(skip_->skipped());
  download->start(std::move(context_), std::move(planned_), scanOptions);
  if (Status status = download->pushFileHeader(options_); !status) return status.error();
  return download;
}

Result<std::shared_ptr<Download>> openDownload(DownloadOptions options, WorkerPool& workers,
                                               std::shared_ptr<BufferPool> slabs) {
  DownloadOpening opening(std::move(options), workers, std::move(slabs));
  for (;;) {
    Result<std::shared_ptr<Download>> opened = opening.step();
    if (!opened || *opened) return opened;
  }
}

}  // namespace capfleet
