#include "store/segment_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>

#include "os/file.h"
#include "store/segment_path.h"

namespace capfleet {

namespace {

uint32_t numberIn(const std::string& digits) {
  return static_cast<uint32_t>(std::strtoul(digits.c_str(), nullptr, 10));
}

/// 0 if this is not the name of a segment's file.
uint32_t segmentNumber(const std::filesystem::path& file) {
  const std::string ending = file.extension();
  const auto end = kSegmentEndings.end();
  if (std::find(kSegmentEndings.begin(), end, ending) == end) return 0;
  const std::string stem = file.stem();
  const uint32_t number = numberIn(stem);
  return zeroPadded(number, 8) == stem ? number : 0;
}

/// Calls `visit` for each entry of a folder; a folder that does not exist has none.
Status forEachEntry(const std::string& folder,
                    const std::function<void(const std::filesystem::path&)>& visit) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return ok();
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    visit(entry->path());
  }
  return error ? storeError("list", folder, error.value()) : ok();
}

/// The contents of a port's folder itself.
struct PortFolder {
  std::set<uint32_t> flat;
  std::set<uint32_t> groups;  ///< numbers of the subfolders
};

Result<PortFolder> readPortFolder(const std::string& path) {
  PortFolder found;
  const Status listed = forEachEntry(path, [&](const std::filesystem::path& entry) {
    if (const uint32_t number = segmentNumber(entry)) {
      found.flat.insert(number);
      return;
    }
    const std::string name = entry.filename();
    const uint32_t group = numberIn(name);
    if (groupName(group) == name) found.groups.insert(group);
  });
  if (!listed) return listed.error();
  return found;
}

Result<std::set<uint32_t>> readGroup(const std::string& portFolder, uint32_t group) {
  std::set<uint32_t> numbers;
  const Status listed =
      forEachEntry(portFolder + "/" + groupName(group), [&](const std::filesystem::path& entry) {
        const uint32_t number = segmentNumber(entry);
        // A file in the wrong group's folder cannot be found by its number, so it is not a segment.
        if (number != 0 && number / kSegmentsPerGroup == group) numbers.insert(number);
      });
  if (!listed) return listed.error();
  return numbers;
}

}  // namespace

Result<std::vector<FoundSegment>> listSegments(const std::string& portFolder,
                                               uint32_t afterNumber) {
  const auto folder = readPortFolder(portFolder);
  if (!folder) return folder.error();
  std::vector<FoundSegment> found;
  for (const uint32_t number : folder->flat) {
    if (number > afterNumber) found.push_back({number, true});
  }
  const uint32_t firstGroup = (afterNumber + 1) / kSegmentsPerGroup;
  for (auto group = folder->groups.lower_bound(firstGroup); group != folder->groups.end();
       ++group) {
    const auto numbers = readGroup(portFolder, *group);
    if (!numbers) return numbers.error();
    for (const uint32_t number : *numbers) {
      if (number > afterNumber) found.push_back({number, false});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const FoundSegment& a, const FoundSegment& b) {
    return a.number < b.number;
  });
  return found;
}

Result<FoundSegment> newestSegment(const std::string& portFolder) {
  const auto folder = readPortFolder(portFolder);
  if (!folder) return folder.error();
  FoundSegment newest;
  if (!folder->flat.empty()) newest = {*folder->flat.rbegin(), true};
  for (auto group = folder->groups.rbegin(); group != folder->groups.rend(); ++group) {
    const auto numbers = readGroup(portFolder, *group);
    if (!numbers) return numbers.error();
    if (numbers->empty()) continue;
    if (*numbers->rbegin() > newest.number) newest = {*numbers->rbegin(), false};
    break;
  }
  return newest;
}

}  // namespace capfleet
