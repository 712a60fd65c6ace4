#include "store/segment_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "os/file.h"
#include "store/segment_path.h"

namespace capfleet {

namespace {

/// 0 when this is no name of a segment's file.
uint32_t segmentNumber(const std::filesystem::path& file) {
  const std::string ending = file.extension();
  const auto end = kSegmentEndings.end();
  if (std::find(kSegmentEndings.begin(), end, ending) == end) return 0;
  const std::string stem = file.stem();
  const auto number = static_cast<uint32_t>(std::strtoul(stem.c_str(), nullptr, 10));
  return segmentPath("", number) == "/" + stem ? number : 0;
}

}  // namespace

Result<std::vector<uint32_t>> listSegments(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  if (error == std::errc::no_such_file_or_directory) return std::vector<uint32_t>{};
  std::set<uint32_t> numbers;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (const uint32_t number = segmentNumber(entry->path())) numbers.insert(number);
  }
  if (error) return storeError("list", directory, error.value());
  return std::vector<uint32_t>(numbers.begin(), numbers.end());
}

}  // namespace capfleet
