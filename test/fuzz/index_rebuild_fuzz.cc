// Property: whatever is in the files of a segment, rebuildIndex() fails, or yields blocks that
// follow each other without a gap up to the end that was asked for, and that a strict reader
// accepts.
//
// Input: 2 bytes each: length of the index, of the segment file, and of its tallies. Then these
// files, and the sieves.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz_input.h"
#include "store/index_rebuild.h"
#include "store/segment_index.h"

namespace {

using capfleet::fuzz::require;

/// A folder of this process, removed at its end.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "capfleet-fuzz-XXXXXX";
    require(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    std::filesystem::create_directory(path_ + "/cap0");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string segment() const { return path_ + "/cap0/00000001"; }

 private:
  std::string path_;
};

void write(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  uint64_t lengths[3];
  for (uint64_t& length : lengths) length = input.take(2);
  std::span<const uint8_t> rest = input.rest();
  std::span<const uint8_t> parts[3];
  for (int i = 0; i < 3; i++) {
    parts[i] = rest.first(std::min<size_t>(lengths[i], rest.size()));
    rest = rest.subspan(parts[i].size());
  }
  write(folder.segment() + ".pcap", parts[1]);
  write(folder.segment() + ".tally", parts[2]);
  write(folder.segment() + ".sieve", rest);
  for (const bool isFinished : {false, true}) {
    capfleet::IndexRebuildOptions options;
    if (isFinished) options.endOffset = parts[1].size();
    const auto index = capfleet::rebuildIndex(folder.segment(), parts[0], options);
    if (!index) continue;
    if (isFinished && parts[1].size() > capfleet::kPcapFileHeaderBytes) {
      require(index->endOffset >= parts[1].size());
    }
    const auto read = capfleet::parseSegmentIndex(capfleet::serialiseIndex(*index), "1.idx");
    require(static_cast<bool>(read));
    require(read->blocks == index->blocks && read->damagedBlocks == index->damagedBlocks);
  }
  return 0;
}
