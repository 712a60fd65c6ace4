// Turns capture files (PCAP, pcapng; optionally compressed) into the segments of one capture.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "import/input_stream.h"
#include "os/result.h"
#include "packet/pcap_format.h"
#include "store/segment_writer.h"

namespace capfleet {

struct ImportOptions {
  /// Regular files, imported in order. Packets with equal port and timestamp keep this order.
  std::vector<std::string> files;
  /// An existing empty folder; cap0/, cap1/ ... are created in it. A hidden folder in it holds sort
  /// runs while unsorted input is imported. Empty again after an error.
  std::string directory;
  uint64_t segmentBytes = uint64_t{1} << 30;
  /// Memory for packets that wait to be sorted. Input whose disorder exceeds this is sorted on
  /// disk. At least one largest record; tests make it small.
  uint64_t sortBytes = uint64_t{16} << 20;
  /// Limit for the packets of all files together, as PCAP records. Sort runs temporarily need the
  /// same amount in addition while unsorted input is imported.
  uint64_t maxBytes = std::numeric_limits<uint64_t>::max();
  /// Maximum decompression ratio of a file (InputStream::open()); at least 1.
  uint32_t maxRatio = InputStream::kDefaultMaxRatio;
};

struct ImportProgress {
  uint64_t inputBytes = 0;  ///< read so far, as stored on disk (compressed if so)
  uint64_t totalInputBytes = 0;
  uint64_t packets = 0;
};

struct ImportedStream {
  uint32_t port = 0;  ///< its segments are in cap<port>/
  PcapFileHeader header;
  std::vector<SegmentSummary> segments;  ///< empty for an interface without packets
};

/// A part of an input that could not be imported. Everything before `offset` was, nothing after.
struct ImportDamage {
  std::string file;
  /// In the file, or in the decompressed stream if `compressed`; 0 = the whole file is left out.
  uint64_t offset = 0;
  bool compressed = false;  ///< the file is compressed
  std::string message;
};

/// A fact about an input from which nothing is missing.
struct ImportNote {
  std::string file;
  std::string message;  ///< continues the name of the file
};

struct ImportResult {
  std::vector<ImportedStream> streams;  ///< by ascending port
  uint64_t packets = 0;                 ///< stored
  /// Left out because PCAP cannot carry their timestamp (before 1970 or after 2106-02-07).
  uint64_t packetsOutOfTimeRange = 0;
  std::vector<ImportDamage> damages;
  std::vector<ImportNote> notes;
};

/// Imports all files into one capture. Each stream is ordered by timestamp, ties in input order. A
/// pcapng interface becomes the capture port with its index; if that port already has another link
/// type, another one (ImportPorts). Files that are joined in one input are read one after another.
/// Blocks for the whole import; uses one thread and at most 64 MiB (plus up to 128 MiB for a zstd
/// input that was compressed with a long window). A file that cannot be opened, is a symbolic link
/// or not a capture file, or becomes too large when decompressed is left out completely and listed
/// in `damages`; the capture consists of the others. `onProgress` (may be empty) is called on this
/// thread about five times a second, and once at the end; returning false cancels. Progress
/// restarts if a file turns out to be left out. Fails with kBadParameter (no files, folder not
/// empty), kBadCaptureFile (no packet could be stored), kStoreFull (the disk, or maxBytes),
/// kStoreUnavailable, kCancelled.
Result<ImportResult> importCaptureFiles(
    const ImportOptions& options, const std::function<bool(const ImportProgress&)>& onProgress);

}  // namespace capfleet
