// The segments of a call of JavaScript.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

namespace capfleet::binding {

inline std::vector<std::string> readPaths(const Napi::Array& from) {
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < from.Length(); i++) {
    paths.push_back(from.Get(i).As<Napi::String>().Utf8Value());
  }
  return paths;
}

/// Paths of segments without ending, of each stream.
inline std::vector<std::vector<std::string>> readStreamPaths(const Napi::Array& from) {
  std::vector<std::vector<std::string>> streams(from.Length());
  for (uint32_t i = 0; i < from.Length(); i++) {
    streams[i] = readPaths(from.Get(i).As<Napi::Array>());
  }
  return streams;
}

}  // namespace capfleet::binding
